"""Models have the parameters and operations of their papers' networks, and refuse other shapes."""

import copy
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from cohort.models import MODELS, Shape

RGB, MNIST, GRAY, DIGITS = (3, 32, 32), (1, 28, 28), (1, 32, 32), (1, 8, 8)
TEXT = (80,)
PARAMETERS = [
    ("aml-lenet", RGB, 100, 1_773_796),
    ("lenet5", RGB, 10, 62_006),
    ("lenet5", MNIST, 10, 44_426),
    ("lenet5", GRAY, 10, 61_706),
    ("vgg11", RGB, 10, 9_225_610),
    ("resnet18", RGB, 10, 11_173_962),
    ("resnet18", MNIST, 10, 11_172_810),
    ("resnet9", RGB, 10, 6_575_370),
    ("resnet9-gn", RGB, 10, 6_575_370),
    ("resnet9-plain", RGB, 10, 6_575_370 - 2 * (64 + 3 * 128 + 256 + 3 * 512)),
    ("resnet20", RGB, 10, 269_722),
    ("stratify-cnn", RGB, 10, 2_193_226),
    ("stratify-cnn", MNIST, 10, 1_701_130),
    ("stratify-mlp", (54,), 2, 55 * 128 + 129 * 64 + 65 * 2),
    ("efficientnet-b0", RGB, 9, 4_019_077),
    ("efficientnet-b3", RGB, 9, 10_710_065),
    ("char-lstm", TEXT, 80, 95_824),
    ("char-lstm-central", TEXT, 79, 819_655),
    ("small-mlp", DIGITS, 10, 64 * 64 + 64 + 64 * 10 + 10),
    ("small-cnn", DIGITS, 10, 9 * 16 + 16 + 9 * 16 * 32 + 32 + 32 * 4 * 10 + 10),
]
MULTIPLY_ADDS = [
    ("aml-lenet", RGB, 100, 32.8e6),
    ("lenet5", RGB, 10, 0.65e6),
    ("lenet5", MNIST, 10, 0.28e6),
    ("vgg11", RGB, 10, 152.8e6),
    ("resnet18", RGB, 10, 0.56e9),
    ("resnet9", RGB, 10, 379e6),
    ("resnet20", RGB, 10, 41e6),
    ("stratify-cnn", RGB, 10, 40.7e6),
    ("efficientnet-b0", (3, 224, 224), 1000, 0.39e9),
    ("char-lstm-central", TEXT, 79, 63.6e6),
    ("char-lstm", TEXT, 80, 6.6e6),
]
SHAPES = [DIGITS, MNIST, GRAY, RGB, (3, 17, 16), (2, 30, 23), (1, 16, 16), (2, 63, 40), (3, 64, 64)]
PARTICULAR: dict[str, Callable[[Shape], bool]] = {
    "lenet5": lambda shape: shape != DIGITS,
    "vgg11": lambda shape: shape in (GRAY, RGB, (2, 63, 40)),
    "efficientnet-b0": lambda shape: shape[0] == 3,
    "efficientnet-b3": lambda shape: shape[0] == 3,
}
IMAGES = [name for name in MODELS if "images" in MODELS[name].kinds]
TAKEN = [
    (name, shape)
    for name in IMAGES
    for shape in SHAPES
    if name not in PARTICULAR or PARTICULAR[name](shape)
]


@pytest.mark.parametrize(("name", "shape", "classes", "expected"), PARAMETERS)
def test_parameters(name: str, shape: Shape, classes: int, expected: int):
    parameters = MODELS[name]().build(shape, classes).parameters()
    assert sum(parameter.numel() for parameter in parameters) == expected


@pytest.mark.parametrize(("name", "shape", "classes", "published"), MULTIPLY_ADDS)
def test_multiply_adds_are_those_of_the_papers_networks(
    name: str, shape: Shape, classes: int, published: float
):
    with torch.device("meta"), FlopCounterMode(display=False) as operations:
        samples = torch.zeros(1, *shape, dtype=torch.long if shape == TEXT else None)
        MODELS[name]().build(shape, classes).eval()(samples)
    assert operations.get_total_flops() / 2 == pytest.approx(published, rel=0.02)


@pytest.mark.parametrize(("name", "shape"), TAKEN)
def test_valid_shapes_pass_the_check(name: str, shape: Shape):
    MODELS[name]().check(shape)


MIN_SIDES = {"lenet5": 16, "aml-lenet": 4, "small-cnn": 4, "stratify-cnn": 4}
MIN_SIDES |= {"resnet18": 8, "resnet9": 8, "resnet20": 4}


@pytest.mark.parametrize(("name", "min_side"), MIN_SIDES.items())
def test_images_too_small_are_refused(name: str, min_side: int):
    model = MODELS[name]()
    model.check((1, min_side, min_side))
    for shape in ((1, min_side - 1, min_side), (1, min_side, min_side - 1), (80,)):
        with pytest.raises(
            ValueError,
            match=rf"^needs images of at least {min_side}x{min_side} pixels, not samples of shape ",
        ):
            model.check(shape)


@pytest.mark.parametrize("name", MODELS)
def test_models_say_whether_they_have_batch_normalization(name: str):
    shape = {"text": TEXT, "table": (54,), "images": RGB}[MODELS[name].kinds[0]]
    layers = MODELS[name]().build(shape, 10).modules()
    assert MODELS[name].batch_norm == any("BatchNorm" in type(layer).__name__ for layer in layers)


def test_lenet5_by_hand():
    """One image of ones, all weights 1/32, no biases: each layer's outputs are equal, so the whole
    is a product of widths.

    First convolution 75/32, second 150/32 of that, then 400/32, 120/32 and 84/32 of what came
    before.
    """
    network = MODELS["lenet5"]().build(RGB, 10).double()
    for name, parameter in network.named_parameters():
        nn.init.constant_(parameter, 1 / 32 if name.endswith("weight") else 0)
    expected = math.prod(width / 32 for width in (75, 150, 400, 120, 84))
    scores = network(torch.ones(1, *RGB, dtype=torch.float64))[0].tolist()
    assert scores == pytest.approx([expected] * 10, rel=1e-12)


def test_pooling_before_relu_is_the_same_to_the_bit():
    """Outputs and gradients are those of the papers' order, ReLU before pooling."""
    torch.manual_seed(4)
    ours = MODELS["aml-lenet"]().build(RGB, 10)
    order = [ours[index] for index in (0, 2, 1, 3, 5, 4, *range(6, len(ours)))]
    inputs, pairs = torch.randn(9, *RGB), []
    for network in (ours, nn.Sequential(*order)):
        network.zero_grad()
        outputs = network(inputs)
        outputs.square().sum().backward()
        pairs.append([outputs, *(parameter.grad.clone() for parameter in ours.parameters())])
    assert all(torch.equal(first, second) for first, second in zip(*pairs, strict=True))


def test_an_lstm_by_hand():
    """Gates in numpy, one character after the other, in torch's order: input, forget, cell, output."""
    torch.manual_seed(3)
    network = MODELS["char-lstm"]().build((5,), 7).double()
    weights = {name: tensor.detach().numpy() for name, tensor in network.named_parameters()}
    hidden = cell = np.zeros(128)
    for character in (2, 6, 0, 3, 3):
        inputs = weights["embedding.weight"][character]
        gates = weights["lstm.weight_ih_l0"] @ inputs + weights["lstm.bias_ih_l0"]
        gates = gates + weights["lstm.weight_hh_l0"] @ hidden + weights["lstm.bias_hh_l0"]
        entering, forgetting, candidate, leaving = np.split(gates, 4)
        cell = cell / (1 + np.exp(-forgetting)) + np.tanh(candidate) / (1 + np.exp(-entering))
        hidden = np.tanh(cell) / (1 + np.exp(-leaving))
    expected = weights["linear.weight"] @ hidden + weights["linear.bias"]
    scores = network(torch.tensor([[2, 6, 0, 3, 3]])).detach()[0].numpy()
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    assert weights["embedding.weight"][0].tolist() == [0] * 32  # no character


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-3), (torch.float64, 1e-11)])
def test_channels_last_gives_the_same_scores_in_both_precisions(
    name: str, dtype: torch.dtype, tolerance: float
):
    """A network that is stored channels-last for a task scores as it does in plain float64,
    relative to its largest score."""
    torch.manual_seed(2)
    network = MODELS[name]().build(RGB, 7).eval()
    images = torch.randn(1, *RGB)
    loaded = copy.deepcopy(network).to(dtype=dtype, memory_format=torch.channels_last)
    with torch.inference_mode():
        results, expected = loaded(images.to(dtype)), network.double()(images.double())
    assert results.dtype == dtype
    assert (results - expected).abs().max() < tolerance * expected.abs().max()
