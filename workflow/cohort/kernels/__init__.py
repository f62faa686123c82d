"""Kernels for networks of many clients on a GPU, in Triton.

Each client has weights of its own, so a layer of all clients is a grid of small products that no
library computes at once. `layers` is the way in: it copies a network, for `torch.vmap` over clients
to call these kernels. `padding` needs no Triton: networks then take batches that are filled up.

Shapes name the axes from the slowest to the fastest: images are (client, sample, row, column,
channel), weights (client, output, row, column, channel). Tiles and splits depend on a layer's shape
alone: so no client's numbers depend on which others are computed beside it.
"""
