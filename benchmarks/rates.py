"""What the measured peak of the machine is a peak of."""

from __future__ import annotations

SIZE = 2048  # rows and columns of the matrices
IMAGES, CHANNELS, SIDE, KERNEL = 64, 64, 56, 3  # of the convolution
REPEATS = 3

OPERATIONS = {
    "product": REPEATS * 2 * SIZE**3,
    "convolution": REPEATS * 2 * IMAGES * SIDE**2 * CHANNELS**2 * KERNEL**2,
}
"""Additions and multiplications of one step, by style."""

TITLES = {
    "product": f"product of {SIZE} x {SIZE} matrices",
    "convolution": f"{KERNEL}x{KERNEL} convolution of {CHANNELS} into {CHANNELS} channels",
}
