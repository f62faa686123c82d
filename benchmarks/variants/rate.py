"""How fast torch computes what it computes fastest, on one thread: products of large matrices, or convolutions of many channels."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import conv2d

from benchmarks.protocol import serve
from benchmarks.rates import CHANNELS, IMAGES, KERNEL, REPEATS, SIDE, SIZE
from benchmarks.variants.given import arguments


def main() -> None:
    """Products or convolutions, when told to."""
    style = arguments().style
    torch.set_num_threads(1)
    left, right, out = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE), torch.empty(SIZE, SIZE)
    images, kernels = (
        torch.randn(IMAGES, CHANNELS, SIDE, SIDE),
        torch.randn(CHANNELS, CHANNELS, KERNEL, KERNEL),
    )
    images, kernels = (tensor.to(memory_format=torch.channels_last) for tensor in (images, kernels))

    @torch.inference_mode()
    def step() -> None:
        for _ in range(REPEATS):
            if style == "product":
                torch.mm(left, right, out=out)
            else:
                conv2d(images, kernels, padding=KERNEL // 2)

    serve(step, lambda: np.zeros(1))


if __name__ == "__main__":
    main()
