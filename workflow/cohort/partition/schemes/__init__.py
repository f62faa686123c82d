"""Partition schemes: one file each."""
