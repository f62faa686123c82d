"""The operations that measure the machine's peak FLOP rate."""

from __future__ import annotations

SIZE = 2048  # matrices are SIZE x SIZE
IMAGES, CHANNELS, SIDE, KERNEL = 64, 64, 56, 3  # of the convolution
REPEATS = 3

OPERATIONS = {
    "product": REPEATS * 2 * SIZE**3,
    "convolution": REPEATS * 2 * IMAGES * SIDE**2 * CHANNELS**2 * KERNEL**2,
}
"""FLOPs of one step, by style."""

TITLES = {
    "product": f"{SIZE}x{SIZE} matrix product",
    "convolution": f"{KERNEL}x{KERNEL} convolution from {CHANNELS} to {CHANNELS} channels",
}
