"""Fused CPU layers and networks: forward and backward passes without autograd."""
