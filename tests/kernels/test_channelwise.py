"""Batch normalization and depthwise convolutions against PyTorch in float64."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from cohort.kernels import channelwise
from cohort.kernels.convolution import Shape
from cohort.kernels.layers import _Normalization
from tests.kernels.test_convolution import DEVICE, assert_close, first

EPS = 1e-5
DEPTHWISE = [  # batch, height, width, channels, outputs, rows, columns, stride, padding
    Shape(2, 9, 7, 5, 5, 3, 3, 1, 1),
    Shape(3, 8, 8, 33, 33, 5, 5, 2, 2),  # channels in several blocks
    Shape(1, 6, 9, 3, 3, 3, 2, 2, 0),
    Shape(2, 17, 17, 2, 2, 3, 3, 1, 1),  # pixels in several splits
]


def like_pytorch(tensor: Tensor) -> Tensor:
    return first(tensor, torch.empty(0).double())


@pytest.mark.parametrize(
    ("batch", "side", "channels", "offset"),
    [(4, 3, 5, 0.0), (3, 1, 40, 0.0), (9, 12, 2, 0.0), (5, 4, 3, 100.0)],
)
def test_normalization(batch: int, side: int, channels: int, offset: float):
    """Of clients of whose samples all, two, one and none count; by float32's digits even where the
    mean is a hundred deviations from zero."""
    sizes = [batch, 2, 1, 0]
    torch.manual_seed(3)
    images = torch.randn(4, batch, side, side, channels) + offset
    weights, bias, running_means = torch.randn(3, 4, channels)
    running_variances = torch.rand(4, channels) + 0.5
    counted = torch.arange(batch) < torch.tensor(sizes)[:, None]
    images[3, :, 0] = 1e30  # whatever a client that is done computes
    leaves = [tensor.to(DEVICE).requires_grad_() for tensor in (images, weights, bias)]
    running = running_means.to(DEVICE), running_variances.to(DEVICE)
    results, means, variances = _Normalization.apply(*leaves, *running, counted.to(DEVICE), EPS)
    along = torch.randn(images.shape) * counted[:, :, None, None, None]
    gradients = torch.autograd.grad(results, leaves, along.to(DEVICE))
    for client, size in enumerate(sizes[:3]):
        own = like_pytorch(images[client]).requires_grad_()
        factors = [tensor[client].double().requires_grad_() for tensor in (weights, bias)]
        moments = [tensor[client].double() for tensor in (running_means, running_variances)]
        args = own[:size], *moments, *factors, size > 1
        expected = functional.batch_norm(*args, momentum=0.1, eps=EPS)
        assert_close(
            like_pytorch(results[client].detach())[:size], expected.detach(), 1e-5 + offset * 2e-7
        )
        if size > 1:
            variance, mean = torch.var_mean(own[:size], (0, 2, 3), correction=0)
            assert_close(means[client], mean)
            assert_close(variances[client], variance, 1e-5 + offset * 1e-7)
        exact = torch.autograd.grad(expected, [own, *factors], like_pytorch(along[client])[:size])
        actual = like_pytorch(gradients[0][client]), gradients[1][client], gradients[2][client]
        for result, gradient in zip(actual, exact, strict=True):
            assert_close(result, gradient, 2e-5 + offset * 1e-6)


@pytest.mark.parametrize("shape", DEPTHWISE)
def test_depthwise_convolution(shape: Shape):
    clients = 2
    torch.manual_seed(0)
    images = torch.randn(clients, shape.batch, shape.height, shape.width, shape.channels)
    weights = torch.randn(clients, shape.channels, shape.rows, shape.columns)
    args = images.to(DEVICE), weights.to(DEVICE), shape
    results = channelwise.filter_channels(*args, backward=False)
    along = torch.randn(results.shape, device=DEVICE)
    of_images = channelwise.filter_channels(along, args[1], shape, backward=True)
    of_weights = channelwise.filter_gradient(args[0], along, shape)
    for client in range(clients):
        leaves = like_pytorch(images[client]), weights[client].double()[:, None]
        leaves = [leaf.requires_grad_() for leaf in leaves]
        options = {"stride": shape.stride, "padding": shape.padding, "groups": shape.channels}
        expected = functional.conv2d(*leaves, **options)
        assert_close(like_pytorch(results[client]), expected)
        exact = torch.autograd.grad(expected, leaves, like_pytorch(along[client]))
        assert_close(like_pytorch(of_images[client]), exact[0])
        assert_close(of_weights[client][:, None], exact[1])
