"""VGG-11: torchvision's layers, NIID-Bench's initial weights, and the shapes it refuses."""

from __future__ import annotations

import math
import re

import pytest
import torch
from torch import nn

from cohort.models import MODELS
from cohort.models.networks import Shape, from_torchvision

RGB = (3, 32, 32)
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


def test_features_of_images_differ_from_the_start():
    """With PyTorch's own first weights, features of different images differ a hundred times less,
    and training hardly starts."""
    torch.manual_seed(7)
    features = MODELS["vgg11"]().build(RGB, 10)[:-1]
    images = torch.randn(16, *RGB)
    ours = features(images).std(dim=0).mean()
    for layer in of_kind(features, nn.Conv2d):
        layer.reset_parameters()
    assert ours > 50 * features(images).std(dim=0).mean()


@pytest.mark.parametrize("name", ["vgg11", "vgg11-bn"])
@pytest.mark.parametrize(
    "shape", [(1, 28, 28), (3, 31, 32), (3, 32, 31), (3, 64, 63), (3, 32, 64), (3, 224, 224), (80,)]
)
def test_images_not_pooled_to_one_pixel_are_refused(name: str, shape: Shape):
    sentence = f"needs images of 32x32 to 63x63 pixels, of which its 5 poolings leave one, not samples of shape {shape}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        MODELS[name]().check(shape)
