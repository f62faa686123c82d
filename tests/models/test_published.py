"""Residual networks, VGG-11 and EfficientNets against torchvision's and against their layers written out."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from cohort.models import MODELS, Shape, residual

RGB, MNIST, DIGITS = (3, 32, 32), (1, 28, 28), (1, 8, 8)


def built(name: str, shape: Shape = RGB) -> nn.Module:
    torch.manual_seed(3)
    network = MODELS[name]().build(shape, 10).double()
    for layer in network.modules():  # else all of them would be alike
        if isinstance(layer, nn.BatchNorm2d | nn.GroupNorm):
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.uniform_(layer.bias, -0.5, 0.5)
    return network


class Layers:
    """The weights of a network in the order of its layers, each taken once."""

    def __init__(self, network: nn.Module):
        kinds = nn.Conv2d, nn.BatchNorm2d, nn.GroupNorm, nn.Linear
        self.left = [layer for layer in network.modules() if isinstance(layer, kinds)]

    def take(self, kind: type[nn.Module]) -> nn.Module:
        layer = self.left.pop(0)
        assert isinstance(layer, kind)
        return layer

    def convolution(self, images: Tensor, stride: int = 1) -> Tensor:
        layer = self.take(nn.Conv2d)
        return functional.conv2d(images, layer.weight, layer.bias, stride, padding=1)

    def normalized(self, images: Tensor) -> Tensor:
        """Normalize by the mean and variance of each channel over the batch."""
        layer = self.take(nn.BatchNorm2d)
        mean = images.mean(dim=(0, 2, 3), keepdim=True)
        variance = images.var(dim=(0, 2, 3), keepdim=True, correction=0)
        scale, shift = (parameter[:, None, None] for parameter in (layer.weight, layer.bias))
        return (images - mean) / (variance + 1e-5).sqrt() * scale + shift

    def grouped(self, images: Tensor) -> Tensor:
        """Normalize by the mean and variance of 32 groups of channels of each image."""
        layer = self.take(nn.GroupNorm)
        groups = images.reshape(len(images), 32, -1)
        mean = groups.mean(dim=2, keepdim=True)
        variance = groups.var(dim=2, keepdim=True, correction=0)
        result = ((groups - mean) / (variance + 1e-5).sqrt()).reshape(images.shape)
        return result * layer.weight[:, None, None] + layer.bias[:, None, None]

    def linear(self, features: Tensor) -> Tensor:
        layer = self.take(nn.Linear)
        return features @ layer.weight.T + layer.bias


@pytest.mark.parametrize("name", ["resnet9", "resnet9-gn", "resnet9-plain"])
def test_resnet9_layer_by_layer(name: str):
    """ReLU before pooling, which is the same."""
    network, images = built(name), torch.randn(3, *RGB, dtype=torch.float64)
    layers = Layers(network)
    normalize = {"resnet9": layers.normalized, "resnet9-gn": layers.grouped}.get(name)

    def block(images: Tensor, pools: bool = False) -> Tensor:
        result = layers.convolution(images)
        result = (normalize(result) if normalize else result).relu()
        return functional.max_pool2d(result, 2) if pools else result

    result = block(block(images), pools=True)
    result = result + block(block(result))
    result = block(block(result, pools=True), pools=True)
    result = result + block(block(result))
    scores = layers.linear(result.amax(dim=(2, 3)))
    assert not layers.left
    assert result.shape == (3, 512, 4, 4)
    torch.testing.assert_close(network(images), scores, rtol=1e-9, atol=1e-9)


def test_resnet20_layer_by_layer():
    network, images = built("resnet20"), torch.randn(4, *RGB, dtype=torch.float64)
    layers = Layers(network)
    result = layers.normalized(layers.convolution(images)).relu()
    for channels in (16, 32, 64):
        for _ in range(3):
            halves = result.shape[1] < channels
            inner = layers.normalized(layers.convolution(result, 2 if halves else 1)).relu()
            inner = layers.normalized(layers.convolution(inner))
            if halves:
                zeros = torch.zeros(4, channels // 4, *inner.shape[2:], dtype=torch.float64)
                result = torch.cat([zeros, result[:, :, ::2, ::2], zeros], dim=1)
            result = (inner + result).relu()
    scores = layers.linear(result.mean(dim=(2, 3)))
    assert not layers.left
    assert result.shape == (4, 64, 8, 8)
    torch.testing.assert_close(network(images), scores, rtol=1e-9, atol=1e-9)


def test_resnet20_starts_with_hes_weights():
    """A variance of two by the number of a layer's inputs."""
    torch.manual_seed(4)
    for layer in MODELS["resnet20"]().build(RGB, 10).modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            inputs = layer.weight[0].numel()
            assert layer.weight.var().item() == pytest.approx(2 / inputs, rel=0.25)


def test_a_shortcut_adds_channels_of_zeros_around_its_own():
    """An image with the pixels 1 to 4 and a stride of 2 leaves every second pixel; the inner layer puts out zeros."""
    inner = nn.Conv2d(1, 3, 1, stride=2, bias=False)
    nn.init.zeros_(inner.weight)
    result = residual(inner, stride=2, new_channels=2)(torch.arange(1.0, 5).view(1, 1, 2, 2))
    assert result.tolist() == [[[[0.0]], [[1.0]], [[0.0]]]]
