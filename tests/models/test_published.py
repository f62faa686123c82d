"""Residual networks, VGG-11 and EfficientNets against torchvision's and against their layers written out."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from cohort.models import MODELS
from cohort.models.networks import Shape, from_torchvision, residual
from cohort.native.network_stages import stages_of
from tests.conftest import ROOT

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
    """An image with the pixels 1 to 4 and a stride of 2 leaves every second pixel; the inner layer
    puts out zeros."""
    inner = nn.Conv2d(1, 3, 1, stride=2, bias=False)
    nn.init.zeros_(inner.weight)
    result = residual(inner, stride=2, new_channels=2)(torch.arange(1.0, 5).view(1, 1, 2, 2))
    assert result.tolist() == [[[[0.0]], [[1.0]], [[0.0]]]]


@pytest.mark.parametrize("shape", [RGB, MNIST, DIGITS, (3, 64, 64)])
def test_native_code_takes_stratifys_cnn(shape: Shape):
    """Five stages: conv, conv and pool, conv and pool, 256 units, and the classes."""
    stages = stages_of(MODELS["stratify-cnn"]().build(shape, 10), shape)
    assert [stage.outer for stage in stages] == [32, 64, 128, 256, 10]
    assert [stage.pools for stage in stages] == [False, True, True, False, False]
    assert [stage.rectifies for stage in stages] == [True] * 4 + [False]


def test_native_code_takes_stratifys_perceptron():
    stages = stages_of(MODELS["stratify-mlp"]().build((54,), 2), (54,))
    assert [(stage.inner, stage.outer) for stage in stages] == [(54, 128), (128, 64), (64, 2)]


CHANNELS = [64, 128, 256, 256, 512, 512, 512, 512]


def of_kind(network: nn.Module, kind: type[nn.Module]) -> list[nn.Module]:
    return [layer for layer in network.modules() if isinstance(layer, kind)]


@pytest.mark.parametrize(("name", "theirs"), [("vgg11", "vgg11"), ("vgg11-bn", "vgg11_bn")])
def test_features_are_torchvisions_to_the_bit(name: str, theirs: str):
    """The same weights, the same images: features, gradients and statistics agree, though we pool
    before the ReLU."""
    torch.manual_seed(5)
    ours = MODELS[name]().build(RGB, 10)[:-1]
    features = from_torchvision("models").get_model(theirs, weights=None).features
    for kind in (nn.Conv2d, nn.BatchNorm2d):
        for parameter, other in zip(of_kind(features, kind), of_kind(ours, kind), strict=True):
            parameter.load_state_dict(other.state_dict())
    images = torch.randn(4, *RGB)
    for network in (features, ours):
        network(images).square().sum().backward()
    assert torch.equal(features(images).flatten(1), ours(images))
    for parameter, other in zip(features.parameters(), ours.parameters(), strict=True):
        assert torch.equal(parameter.grad, other.grad)
    for parameter, other in zip(features.buffers(), ours.buffers(), strict=True):
        assert torch.equal(parameter, other)


def test_initial_weights_are_those_of_niid_bench():
    """Convolutions are normal with a variance of two by nine times the channels after them, without
    biases; the linear layer is PyTorch's own: uniform up to the root of one by 512."""
    torch.manual_seed(6)
    network = MODELS["vgg11"]().build(RGB, 10)
    convolutions = of_kind(network, nn.Conv2d)
    assert [layer.out_channels for layer in convolutions] == CHANNELS
    for layer, channels in zip(convolutions, CHANNELS, strict=True):
        measured = layer.weight.std().item() / math.sqrt(2 / (9 * channels))
        assert abs(measured - 1) < 5 / math.sqrt(2 * layer.weight.numel())
        assert abs(layer.weight.mean()) < 5 * layer.weight.std() / math.sqrt(layer.weight.numel())
        assert not layer.bias.any()
    assert 0.99 < network[-1].weight.abs().max() * math.sqrt(512) <= 1


@pytest.mark.parametrize("name", ["vgg11", "vgg11-bn"])
@pytest.mark.parametrize(
    "shape", [(1, 28, 28), (3, 31, 32), (3, 32, 31), (3, 64, 63), (3, 32, 64), (3, 224, 224), (80,)]
)
def test_images_not_pooled_to_one_pixel_are_refused(name: str, shape: Shape):
    sentence = f"needs images of 32x32 to 63x63 pixels, of which its 5 poolings leave one, not samples of shape {shape}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        MODELS[name]().check(shape)


def resnet18(shape: tuple[int, ...], seed: int = 1) -> nn.Module:
    torch.manual_seed(seed)
    return MODELS["resnet18"]().build(shape, 10)


@pytest.mark.parametrize("shape", [RGB, MNIST])
def test_only_the_first_layer_is_not_torchvisions(shape: tuple[int, ...]):
    theirs = from_torchvision("models").get_model("resnet18", num_classes=10)
    expected = {name: tensor.shape for name, tensor in theirs.state_dict().items()}
    expected["conv1.weight"] = torch.Size((64, shape[0], 3, 3))
    assert {name: tensor.shape for name, tensor in resnet18(shape).state_dict().items()} == expected


def test_the_rest_is_torchvisions_to_the_bit():
    """Behind the first layer, and without its max pooling, outputs and gradients agree."""
    ours, theirs = resnet18(RGB), from_torchvision("models").get_model("resnet18", num_classes=10)
    theirs.conv1, theirs.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Sequential()
    theirs.load_state_dict(ours.state_dict())
    images = torch.randn(4, *RGB)
    for network in (ours, theirs):
        network(images).square().sum().backward()
    for parameter, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(parameter.grad, other.grad)


NAMES = ["efficientnet-b0", "efficientnet-b3"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(1, 32, 32), (4, 32, 32), (3, 32), (80,)])
def test_only_color_images_are_taken(name: str, shape: Shape):
    sentence = f"needs images with three color channels, not samples of shape {shape}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        MODELS[name]().check(shape)


def test_torchvision_imports_whether_or_not_its_operators_load():
    code = """
from cohort.models.networks import from_torchvision
print(from_torchvision("models").get_model("resnet18", weights=None).fc.out_features)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "workflow",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1000\n"
