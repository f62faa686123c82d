"""The peak FLOP rate of torch on one thread: large matrix products or wide convolutions."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import conv2d

from benchmarks.protocol import serve
from benchmarks.rates import CHANNELS, IMAGES, KERNEL, REPEATS, SIDE, SIZE
from benchmarks.variants.inputs import arguments


def main() -> None:
    """Serve rounds of the operation that `--style` names, for its rate."""
    style = arguments().style
    torch.set_num_threads(1)
    left, right, out = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE), torch.empty(SIZE, SIZE)
    shapes = (IMAGES, CHANNELS, SIDE, SIDE), (CHANNELS, CHANNELS, KERNEL, KERNEL)
    images, kernels = (torch.randn(shape).to(memory_format=torch.channels_last) for shape in shapes)

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
