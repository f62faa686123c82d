"""ResNet-18: torchvision's network but for its first layer, also for gray images."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from cohort.models import MODELS
from cohort.models.networks import from_torchvision

RGB, GRAY = (3, 32, 32), (1, 28, 28)


def built(shape: tuple[int, ...], seed: int = 1) -> nn.Module:
    torch.manual_seed(seed)
    return MODELS["resnet18"]().build(shape, 10)


@pytest.mark.parametrize("shape", [RGB, GRAY])
def test_only_the_first_layer_is_not_torchvisions(shape: tuple[int, ...]):
    theirs = from_torchvision("models").get_model("resnet18", num_classes=10)
    expected = {name: tensor.shape for name, tensor in theirs.state_dict().items()}
    expected["conv1.weight"] = torch.Size((64, shape[0], 3, 3))
    assert {name: tensor.shape for name, tensor in built(shape).state_dict().items()} == expected


def test_the_rest_is_torchvisions_to_the_bit():
    """Behind the first layer, and without its max pooling, outputs and gradients agree."""
    ours, theirs = built(RGB), from_torchvision("models").get_model("resnet18", num_classes=10)
    theirs.conv1, theirs.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Sequential()
    theirs.load_state_dict(ours.state_dict())
    images = torch.randn(4, *RGB)
    for network in (ours, theirs):
        network(images).square().sum().backward()
    for parameter, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(parameter.grad, other.grad)


def test_the_first_layer_keeps_the_size_and_starts_like_the_others():
    network = built(RGB)
    assert network.conv1(torch.zeros(2, *RGB)).shape == (2, 64, 32, 32)
    expected = (2 / (9 * 64)) ** 0.5
    assert network.conv1.weight.std().item() == pytest.approx(expected, rel=0.1)
    assert network.layer1[0].conv1.weight.std().item() == pytest.approx(expected, rel=0.02)


def test_initial_weights_come_from_the_generator():
    once, again, other = (built(GRAY, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(once[name], again[name]) for name in once)
    assert not torch.equal(once["conv1.weight"], other["conv1.weight"])
