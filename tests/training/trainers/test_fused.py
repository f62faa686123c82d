"""The fused trainer gives what the serial one gives."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.training.fused import layers
from cohort.training.fused.layers import (
    FUSED,
    LARGE,
    ConvPool,
    FusedConvPool2x2,
    FusedMaxPool2d,
    FusedReLU,
    _matmul,
)
from cohort.training.fused.network import fuse, outputs_of
from cohort.training.objectives import Objective
from cohort.training.task import Task
from cohort.training.trainers.fused import FusedTrainer
from cohort.training.trainers.serial import SerialTrainer
from tests.training.small_task import small_task, train, trainer_of
from tests.training.trainers.test_batched import OBJECTIVES, assert_same

SHAPE, CLASSES, SIZES = (3, 32, 32), 4, (12, 7, 9)


def seeded(make: Callable[[], Any]) -> Any:
    """The same weights each time: where two pooled outputs are nearly equal, rounding decides which
    one gets the gradient, and that changes more than rounding does."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return make()


UNUSUAL = seeded(
    lambda: nn.Sequential(  # strides, dilations, groups, overlapping windows
        nn.ReLU(),
        nn.Conv2d(3, 6, (3, 5), stride=(2, 1), padding=(1, 0), dilation=2, groups=3),
        nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 0), ceil_mode=True),
        nn.Flatten(),
        nn.Linear(6 * 8 * 23, CLASSES),
    )
)
NARROW = seeded(
    lambda: nn.Sequential(  # convolutions with 2x2 pooling, odd sizes and padding
        nn.Conv2d(3, 6, (4, 5)),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, (3, 6), padding=(1, 2)),
        nn.MaxPool2d(2, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 7 * 6, CLASSES),
    )
)
RECTIFIED = seeded(
    lambda: nn.Sequential(  # ReLU before pooling: with few channels, with many, and after a pooling
        nn.Conv2d(3, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 3 * 3, CLASSES),
    )
)


def task_of(model: nn.Module, dtype: torch.dtype, **settings: Any) -> Task:
    rng = np.random.default_rng(8)
    values, labels = (
        torch.from_numpy(rng.random((sum(SIZES), *SHAPE))),
        torch.from_numpy(rng.integers(0, CLASSES, sum(SIZES))),
    )
    train = Samples(
        values.to(dtype),
        labels,
        1.0,
        torch.zeros(3, 1, 1, dtype=dtype),
        torch.ones(3, 1, 1, dtype=dtype),
    )
    return small_task(
        model=model.to(dtype), train=train, test=train, sizes=SIZES, lr=0.05, **settings
    )


def assert_agree(model: nn.Module, **settings: Any) -> None:
    """To 1e-5 of each weight tensor after one round; in float64 to 1e-10."""
    for dtype, rtol in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        task, found = task_of(copy.deepcopy(model), dtype, **settings), []
        weights = task.initial_weights()
        for kind in (SerialTrainer, FusedTrainer):
            found.append(train(trainer_of(task, kind), weights, range(3), 3))
        assert_same(*found, rtol=rtol)
        assert (found[0].distances(weights) > 1e-3).all()


def built(name: str) -> nn.Module:
    return seeded(lambda: MODELS[name]().build(SHAPE, CLASSES)).to(
        memory_format=torch.channels_last
    )


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", ["lenet5", "aml-lenet", "small-cnn", "small-mlp"])
def test_every_fusible_model_of_the_catalog(name: str, batch: int):
    assert_agree(built(name), J="J1e", batch=batch, momentum=0.9, weight_decay=1e-3)


@pytest.mark.parametrize("name", ["lenet5", "aml-lenet", "small-cnn", "small-mlp", "vgg11"])
def test_outputs_in_evaluation(name: str, monkeypatch: pytest.MonkeyPatch):
    """They are the network's but for rounding, without a call of its own forward pass."""
    for dtype, bound in ((torch.float32, 1e-5), (torch.float64, 1e-13)):
        model = built(name).to(dtype).eval()
        inputs = torch.randn(40, *SHAPE, generator=torch.Generator().manual_seed(3), dtype=dtype)
        with torch.inference_mode():
            expected = model(inputs)
            with monkeypatch.context() as patch:
                patch.delattr(nn.Sequential, "forward")
                found = outputs_of(model, inputs)
        assert (found - expected).abs().max() < bound * expected.abs().max()


def test_outputs_of_a_network_that_cannot_be_fused():
    model, inputs = nn.Sequential(nn.Linear(3, 2), nn.Tanh()), torch.ones(4, 3)
    assert torch.equal(outputs_of(model, inputs), model(inputs))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: objective.name)
def test_every_objective(objective: Objective):
    assert_agree(built("lenet5"), J="J3", objective=objective, clip=0.2)


def test_unusual_layers():
    assert_agree(UNUSUAL, J="J3")


def test_pooled_convolutions_with_few_channels():
    assert [type(layer) for layer in fuse(NARROW)[:2]] == [FusedConvPool2x2, FusedConvPool2x2]
    assert_agree(NARROW, J="J3")


def test_relu_moves_behind_the_pooling():
    kinds = [type(layer) for layer in fuse(RECTIFIED)[:6]]
    expected = [FusedConvPool2x2, FusedReLU, ConvPool, FusedReLU, FusedMaxPool2d, FusedReLU]
    assert kinds == expected
    assert_agree(RECTIFIED, J="J3")


def test_one_of_several_equal_outputs_gets_the_gradient():
    """As in PyTorch's pooling, on a constant image."""
    layers, inputs = copy.deepcopy(NARROW[:2]), torch.ones(2, 3, 9, 9)
    (fused,) = fuse(layers)
    layers(inputs).sum().backward()
    expected = [layers[0].weight.grad, layers[0].bias.grad]
    layers.zero_grad()
    with torch.no_grad():
        fused.backward(torch.ones_like(fused.forward(inputs)), False)
    torch.testing.assert_close([layers[0].weight.grad, layers[0].bias.grad], expected)


@pytest.mark.parametrize("onednn", [None, torch.ops.mkldnn._linear_pointwise])
def test_large_matrix_products(onednn: Any, monkeypatch: pytest.MonkeyPatch):
    """On both sides of the size from which oneDNN computes them, on processors where it does."""
    monkeypatch.setattr(layers, "onednn_linear", lambda: onednn)
    generator = torch.Generator().manual_seed(1)
    for rows in (2, LARGE // 1000 + 1):
        left, right, bias = (
            torch.randn(shape, generator=generator) for shape in ((rows, 100), (10, 100), (10,))
        )
        torch.testing.assert_close(
            _matmul(left, right, bias),
            (left.double() @ right.double().t() + bias).float(),
            rtol=1e-4,
            atol=1e-5,
        )


def test_every_fused_layer_is_tested():
    models = [UNUSUAL, *map(built, ("lenet5", "aml-lenet", "small-cnn", "small-mlp"))]
    assert {type(layer) for model in models for layer in model} == set(FUSED)


def test_networks_and_settings_that_do_not_fit():
    settings = small_task().settings
    assert FusedTrainer.fits(UNUSUAL, settings) and FusedTrainer.fits(built("lenet5"), settings)
    assert not FusedTrainer.fits(built("vgg11-bn"), settings)
    assert not FusedTrainer.fits(nn.Sequential(nn.Flatten(), nn.Tanh(), nn.Linear(64, 3)), settings)
    assert not FusedTrainer.fits(
        nn.Sequential(nn.Flatten(), nn.Linear(64, 3, bias=False)), settings
    )
    assert not FusedTrainer.fits(
        nn.Sequential(nn.Conv2d(3, 4, 3, padding="same"), nn.Flatten()), settings
    )
    assert not FusedTrainer.fits(
        nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), nn.Flatten()),
        settings,
    )
    assert not FusedTrainer.fits(built("lenet5"), small_task(precision="bfloat16").settings)
