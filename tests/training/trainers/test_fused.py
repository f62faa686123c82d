"""The chained trainer does what the serial one does."""

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
from cohort.training.fused.layers import LARGE, LINKS, Pool, Pooled, Quartered, Rectifier, _product
from cohort.training.fused.network import chain_of, outputs_of
from cohort.training.objectives import Objective
from cohort.training.task import Task
from cohort.training.trainers.fused import ChainedTrainer
from cohort.training.trainers.serial import SerialTrainer
from tests.training.small_task import small_task
from tests.training.trainers.test_batched import OBJECTIVES, assert_same

SHAPE, CLASSES, SIZES = (3, 32, 32), 4, (12, 7, 9)


def seeded(make: Callable[[], Any]) -> Any:
    """The same weights each time: of two outputs that are nearly equal rounding chooses, and that moves more than rounding does."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return make()


UNUSUAL = seeded(
    lambda: (
        nn.Sequential(  # strides, dilations, groups, overlapping windows: what no model of the house has
            nn.ReLU(),
            nn.Conv2d(3, 6, (3, 5), stride=(2, 1), padding=(1, 0), dilation=2, groups=3),
            nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 0), ceil_mode=True),
            nn.Flatten(),
            nn.Linear(6 * 8 * 23, CLASSES),
        )
    )
)
NARROW = seeded(
    lambda: (
        nn.Sequential(  # convolutions whose outputs are pooled by halves, odd sizes and padding, the second in the middle of the chain
            nn.Conv2d(3, 6, (4, 5)),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 8, (3, 6), padding=(1, 2)),
            nn.MaxPool2d(2, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(8 * 7 * 6, CLASSES),
        )
    )
)
RECTIFIED = seeded(
    lambda: (
        nn.Sequential(  # pooled after they are rectified: of few channels, of many, and what was pooled before
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
        for kind in (SerialTrainer, ChainedTrainer):
            trainer = trainer_of(task, kind)
            found.append(trainer.train(weights, np.arange(3), 3))
        assert_same(*found, rtol=rtol)
        assert (found[0].distances(weights) > 1e-3).all()


def built(name: str) -> nn.Module:
    return seeded(lambda: MODELS[name]().build(SHAPE, CLASSES)).to(
        memory_format=torch.channels_last
    )


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", ["lenet5", "aml-lenet", "small-cnn", "small-mlp"])
def test_every_chain_of_the_house(name: str, batch: int):
    assert_agree(built(name), J="J1e", batch=batch, momentum=0.9, weight_decay=1e-3)


@pytest.mark.parametrize("name", ["lenet5", "aml-lenet", "small-cnn", "small-mlp", "vgg11"])
def test_outputs_in_evaluation(name: str, monkeypatch: pytest.MonkeyPatch):
    """They are the network's but for rounding, and it is not asked."""
    for dtype, bound in ((torch.float32, 1e-5), (torch.float64, 1e-13)):
        model = built(name).to(dtype).eval()
        inputs = torch.randn(40, *SHAPE, generator=torch.Generator().manual_seed(3), dtype=dtype)
        with torch.inference_mode():
            expected = model(inputs)
            with monkeypatch.context() as patch:
                patch.delattr(nn.Sequential, "forward")
                found = outputs_of(model, inputs)
        assert (found - expected).abs().max() < bound * expected.abs().max()


def test_outputs_of_what_is_no_chain():
    model, inputs = nn.Sequential(nn.Linear(3, 2), nn.Tanh()), torch.ones(4, 3)
    assert torch.equal(outputs_of(model, inputs), model(inputs))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: objective.name)
def test_every_objective(objective: Objective):
    assert_agree(built("lenet5"), J="J3", objective=objective, clip=0.2)


def test_a_chain_of_unusual_layers():
    assert_agree(UNUSUAL, J="J3")


def test_pooled_convolutions_of_few_channels():
    assert [type(link) for link in chain_of(NARROW)[:2]] == [Quartered, Quartered]
    assert_agree(NARROW, J="J3")


def test_what_is_rectified_before_it_is_pooled():
    kinds = [type(link) for link in chain_of(RECTIFIED)[:6]]
    assert kinds == [Quartered, Rectifier, Pooled, Rectifier, Pool, Rectifier]
    assert_agree(RECTIFIED, J="J3")


def test_one_of_equal_outputs_has_the_gradient():
    """As in PyTorch's pooling, on an image of one value."""
    layers, inputs = copy.deepcopy(NARROW[:2]), torch.ones(2, 3, 9, 9)
    (link,) = chain_of(layers)
    layers(inputs).sum().backward()
    expected = [layers[0].weight.grad, layers[0].bias.grad]
    layers.zero_grad()
    with torch.no_grad():
        link.backward(torch.ones_like(link.forward(inputs)), False)
    torch.testing.assert_close([layers[0].weight.grad, layers[0].bias.grad], expected)


@pytest.mark.parametrize("onednn", [None, torch.ops.mkldnn._linear_pointwise])
def test_large_products_of_matrices(onednn: Any, monkeypatch: pytest.MonkeyPatch):
    """On both sides of the size from which oneDNN makes them, where it does."""
    monkeypatch.setattr(layers, "ONEDNN", onednn)
    generator = torch.Generator().manual_seed(1)
    for rows in (2, LARGE // 1000 + 1):
        left, right, bias = (
            torch.randn(shape, generator=generator) for shape in ((rows, 100), (10, 100), (10,))
        )
        torch.testing.assert_close(
            _product(left, right, bias),
            (left.double() @ right.double().t() + bias).float(),
            rtol=1e-4,
            atol=1e-5,
        )


def test_every_kind_of_layer_is_tried():
    models = [UNUSUAL, *map(built, ("lenet5", "aml-lenet", "small-cnn", "small-mlp"))]
    assert {type(layer) for model in models for layer in model} == set(LINKS)


def test_what_does_not_fit():
    settings = small_task().settings
    assert ChainedTrainer.fits(UNUSUAL, settings) and ChainedTrainer.fits(built("lenet5"), settings)
    assert not ChainedTrainer.fits(built("vgg11-bn"), settings)
    assert not ChainedTrainer.fits(
        nn.Sequential(nn.Flatten(), nn.Tanh(), nn.Linear(64, 3)), settings
    )
    assert not ChainedTrainer.fits(
        nn.Sequential(nn.Flatten(), nn.Linear(64, 3, bias=False)), settings
    )
    assert not ChainedTrainer.fits(
        nn.Sequential(nn.Conv2d(3, 4, 3, padding="same"), nn.Flatten()), settings
    )
    assert not ChainedTrainer.fits(
        nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), nn.Flatten()),
        settings,
    )
    assert not ChainedTrainer.fits(built("lenet5"), small_task(procedure="concat-2").settings)
    assert not ChainedTrainer.fits(built("lenet5"), small_task(precision="bfloat16").settings)
