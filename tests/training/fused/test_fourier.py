"""Fourier convolutions give what PyTorch's convolutions give."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from cohort.training.fused.fourier import FourierConvolution, is_faster

CASES = {  # sides, kernel, padding, input and output channels
    "the usual": ((6, 6), (3, 3), (1, 1), 5, 4),
    "odd and even sides": ((5, 8), (3, 2), (2, 0), 3, 6),
    "a kernel as large as the map": ((4, 4), (4, 4), (0, 0), 2, 3),
    "a kernel larger than the map": ((2, 1), (5, 3), (2, 1), 2, 3),
    "one pixel": ((1, 1), (1, 1), (0, 0), 1, 1),
    "as much padding as a kernel allows": ((3, 7), (3, 3), (2, 2), 2, 2),
}


def drawn(case: str, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, tuple[int, int]]:
    sides, kernel, padding, inner, outer = CASES[case]
    generator, shapes = (
        torch.Generator().manual_seed(5),
        ((7, inner, *sides), (outer, inner, *kernel)),
    )
    inputs, weight = (
        torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes
    )
    return (
        inputs,
        weight,
        torch.randn(
            conv2d(inputs, weight, padding=padding).shape, generator=generator, dtype=dtype
        ),
        padding,
    )


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 2e-6), (torch.float64, 1e-14)])
@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_match_pytorch(case: str, dtype: torch.dtype, bound: float):
    """Errors are bounded by a share of the largest value."""
    inputs, weight, gradient, padding = drawn(case, dtype)
    outputs = conv2d(inputs, weight, padding=padding)
    expected = [outputs, *torch.autograd.grad(outputs, [weight, inputs], gradient)]
    with torch.no_grad():
        fourier = FourierConvolution(weight, padding, inputs.shape[2:])
        found = [fourier.forward(inputs), *fourier.backward(gradient, True)]
        assert torch.equal(fourier.backward(gradient, False)[0], found[1])
    for own, theirs in zip(found, expected, strict=True):
        assert own.shape == theirs.shape
        assert (own - theirs).abs().max() < bound * theirs.abs().max()


def test_where_it_is_faster():
    """Faster: the second convolution of AML's LeNet and all but the first of VGG-11. Not faster:
    LeNet-5's, large maps, a single sample, padding beyond the kernel's reach, other devices."""

    def asked(inner: int, outer: int, side: int, kernel: int, padding: int, batch: int) -> bool:
        inputs = torch.Size((batch, inner, side, side))
        return is_faster(torch.empty(outer, inner, kernel, kernel), (padding, padding), inputs)

    assert all(
        asked(*case, 32)
        for case in (
            (64, 64, 16, 5, 2),
            (512, 512, 2, 3, 1),
            (512, 512, 4, 3, 1),
            (128, 256, 8, 3, 1),
            (64, 128, 16, 3, 1),
        )
    )
    assert not any(
        asked(*case, 64)
        for case in ((3, 64, 32, 5, 2), (1, 6, 32, 5, 0), (6, 16, 14, 5, 0), (64, 64, 32, 3, 1))
    )
    assert not asked(64, 64, 16, 5, 2, batch=1) and not asked(64, 64, 16, 1, 1, batch=64)
    assert not is_faster(
        torch.empty(64, 64, 5, 5, device="meta"), (2, 2), torch.Size((32, 64, 16, 16))
    )
