"""The kernels against PyTorch in float64."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from cohort.kernels.convolution import (
    Shape,
    activation_gradient,
    convolve,
    input_gradient,
    weight_gradients,
)

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SHAPES = [  # batch, height, width, channels, outputs, rows, columns, stride, padding
    Shape(3, 8, 8, 3, 8, 5, 5, 1, 2),
    Shape(2, 9, 7, 32, 5, 3, 3, 1, 1),  # whole blocks of taps
    Shape(1, 1, 1, 70, 10, 1, 1, 1, 0),  # a linear layer on one sample
    Shape(5, 1, 1, 32, 65, 1, 1, 1, 0),
    Shape(2, 9, 9, 4, 6, 3, 3, 2, 1),
    Shape(2, 8, 8, 6, 1, 1, 1, 2, 0),  # a shortcut that halves images
    Shape(2, 7, 9, 3, 4, 3, 2, 1, 0),  # odd sides, which pooling cuts
    Shape(9, 12, 12, 1, 4, 3, 3, 1, 1),  # pixels in several splits and blocks
]


def first(tensor: Tensor, like: Tensor) -> Tensor:
    """Channels first, as PyTorch has them, in the type of the expected values."""
    return tensor.movedim(-1, 1).to(like)


def assert_close(result: Tensor, expected: Tensor, error: float = 1e-5) -> None:
    assert (result.to(expected) - expected).abs().max() <= error * expected.abs().max()


POOLED = [shape for shape in SHAPES if min(shape.out_height, shape.out_width) > 1]


@pytest.mark.parametrize(
    ("shape", "rectifies", "pools"),
    [
        *((shape, rectifies, False) for shape in SHAPES for rectifies in (False, True)),
        *((shape, True, True) for shape in POOLED),
    ],
)
def test_results_and_gradients(shape: Shape, rectifies: bool, pools: bool):
    clients = 2
    torch.manual_seed(0)
    images = torch.randn(clients, shape.batch, shape.height, shape.width, shape.channels)
    weights = torch.randn(clients, shape.outputs, shape.rows, shape.columns, shape.channels)
    bias = torch.randn(clients, shape.outputs)
    tensors = [tensor.to(DEVICE) for tensor in (images, weights, bias)]
    results, winners = convolve(*tensors, shape, "ieee", rectifies, pools)
    gradients = torch.randn(results.shape, device=DEVICE)
    before = gradients
    if rectifies:
        before = activation_gradient(gradients, results, winners, shape, pools)
    of_images = input_gradient(before, tensors[1], shape, "ieee")
    of_weights, of_bias = weight_gradients(tensors[0], before, shape, "ieee")
    for client in range(clients):
        leaves = [first(tensor[client], torch.empty(0).double()) for tensor in (images, weights)]
        leaves = [leaf.requires_grad_() for leaf in (*leaves, bias[client].double())]
        expected = functional.conv2d(*leaves, shape.stride, shape.padding)
        expected = expected.relu() if rectifies else expected
        expected = functional.max_pool2d(expected, 2) if pools else expected
        assert_close(first(results[client], expected), expected)
        along = first(gradients[client], expected)
        by_autograd = torch.autograd.grad(expected, leaves, along)
        own = of_images[client].movedim(-1, 1), of_weights[client].movedim(-1, 1), of_bias[client]
        for result, gradient in zip(own, by_autograd, strict=True):
            assert_close(result, gradient)


def test_nan_passes_relu():
    """A run that diverges must say so."""
    images = torch.full((1, 1, 1, 1, 1), torch.nan, device=DEVICE)
    weights, shape = torch.ones(1, 1, 1, 1, 1, device=DEVICE), Shape(1, 1, 1, 1, 1, 1, 1, 1, 0)
    assert convolve(images, weights, None, shape, "ieee", True, False)[0].isnan().all()
