"""Kernels for networks of many clients on a GPU, in Triton.

Each client has weights of its own, so a layer of all clients is a grid of small products that no
library computes at once. `layers` is the way in: it makes a copy of a network whose layers call
these kernels under `torch.vmap` over clients. `padding` needs no Triton: it lets networks take
batches that are filled up. Nothing here knows federated learning.

Shapes in comments and docstrings name the axes from the slowest to the fastest: images are
(client, sample, row, column, channel), weights (client, output, row, column, channel). Tiles and
splits depend on a layer's shape, never on the number of clients: so no client's numbers depend on
which others are computed beside it, and every sum has a fixed order.
"""
