"""The chained trainer does what the serial one does, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.training.chained import LINKS, ChainedTrainer
from cohort.training.objectives import Objective
from cohort.training.serial import SerialTrainer
from cohort.training.task import Task
from tests.training.small_task import small_task
from tests.training.test_batched import OBJECTIVES

SHAPE, CLASSES, SIZES = (3, 32, 32), 4, (12, 7, 9)
UNUSUAL = nn.Sequential(  # strides, dilations, groups, overlapping windows: what no model of the house has
    nn.ReLU(),
    nn.Conv2d(3, 6, (3, 5), stride=(2, 1), padding=(1, 0), dilation=2, groups=3),
    nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 0), ceil_mode=True),
    nn.Flatten(),
    nn.Linear(6 * 8 * 23, CLASSES),
)


def task_of(model: nn.Module, **settings: Any) -> Task:
    rng = np.random.default_rng(8)
    values, labels = rng.random((sum(SIZES), *SHAPE), dtype=np.float32), rng.integers(0, CLASSES, sum(SIZES))
    train = Samples(torch.from_numpy(values), torch.from_numpy(labels), 1.0, torch.zeros(3, 1, 1), torch.ones(3, 1, 1))
    return small_task(model=model, train=train, test=train, sizes=SIZES, lr=0.05, **settings)


def assert_same(task: Task) -> None:
    weights, found = task.initial_weights(), []
    for kind in (SerialTrainer, ChainedTrainer):
        trainer = kind(task.model, task.settings, task.objective, task.train_samples, task.shards.indices)
        found.append(trainer.train(weights, np.arange(3), 3))
    serial, chained = found
    assert torch.equal(serial.losses, chained.losses) and (serial.distances(weights) > 1e-3).all()
    for name, tensor in serial.weights.items():
        assert torch.equal(tensor, chained.weights[name]), name


def built(name: str) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return MODELS[name]().build(SHAPE, CLASSES).to(memory_format=torch.channels_last)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", ["lenet5", "aml-lenet", "small-cnn", "small-mlp"])
def test_every_chain_of_the_house(name: str, batch: int):
    assert_same(task_of(built(name), J="J2e", batch=batch, momentum=0.9, weight_decay=1e-3))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: objective.name)
def test_every_objective(objective: Objective):
    assert_same(task_of(built("lenet5"), J="J3", objective=objective, clip=0.2))


def test_a_chain_of_unusual_layers():
    assert_same(task_of(UNUSUAL, J="J3"))


def test_every_kind_of_layer_is_tried():
    models = [UNUSUAL, *map(built, ("lenet5", "aml-lenet", "small-cnn", "small-mlp"))]
    assert {type(layer) for model in models for layer in model} == set(LINKS)


def test_what_does_not_fit():
    settings = small_task().settings
    assert ChainedTrainer.fits(UNUSUAL, settings) and ChainedTrainer.fits(built("lenet5"), settings)
    assert not ChainedTrainer.fits(built("vgg11-bn"), settings)
    assert not ChainedTrainer.fits(nn.Sequential(nn.Flatten(), nn.Tanh(), nn.Linear(64, 3)), settings)
    assert not ChainedTrainer.fits(nn.Sequential(nn.Flatten(), nn.Linear(64, 3, bias=False)), settings)
    assert not ChainedTrainer.fits(nn.Sequential(nn.Conv2d(3, 4, 3, padding="same"), nn.Flatten()), settings)
    assert not ChainedTrainer.fits(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), nn.Flatten()), settings)
    assert not ChainedTrainer.fits(built("lenet5"), small_task(procedure="concat-2").settings)
    assert not ChainedTrainer.fits(built("lenet5"), small_task(precision="bfloat16").settings)
