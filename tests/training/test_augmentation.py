"""Augmentation in training depends on seed, round, client, place in the shard and epoch only."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cohort.core.randomness import generator
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.samples import Samples
from cohort.training.task import Task
from cohort.training.trainers.serial import SerialTrainer
from tests.training import small_task as small
from tests.training.small_task import SIZES, small_task

MEAN, STD = 0.5, 0.25


class Watched(nn.Module):
    """A linear model that keeps its inputs, separately in training and in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3 * 8 * 8, 3, bias=False).double()
        nn.init.constant_(self.layer.weight, 0.01)
        self.recorded: dict[bool, list[Tensor]] = {True: [], False: []}

    def forward(self, inputs: Tensor) -> Tensor:
        self.recorded[self.training].append(inputs.clone())
        return self.layer(inputs.flatten(1))


def colored(count: int, seed: int) -> Samples:
    rng = np.random.default_rng(seed)
    images = torch.from_numpy(rng.integers(0, 256, (count, 3, 8, 8), dtype=np.uint8))
    mean, std = (torch.full((3, 1, 1), value, dtype=torch.float64) for value in (MEAN, STD))
    return Samples(images, torch.arange(count) % 3, 255.0, mean, std)


def colored_task(augmentation: str, **settings: Any) -> Task:
    parts = {"model": Watched(), "train": colored(sum(SIZES), 0), "test": colored(20, 1)}
    return small_task(**parts, augmentation=augmentation, **({"J": "J2e", "batch": 4} | settings))


def inputs_of(augmentation: str, *cohort: int, round: int = 1, **settings: Any) -> Tensor:
    """The network's inputs while a cohort trains."""
    return train(colored_task(augmentation, **settings), *cohort, round=round)


def train(task: Task, *cohort: int, round: int = 1) -> Tensor:
    small.train(SerialTrainer(task), task.initial_weights(), cohort, round)
    assert isinstance(task.model, Watched)
    return torch.cat(task.model.recorded[True])


CHANGING = sorted(set(AUGMENTATIONS) - {"none"})


@pytest.mark.parametrize("name", CHANGING)
def test_each_sample_is_augmented_by_the_draws_of_its_address(name: str):
    """Client 1 trains on nine samples for two epochs; it draws once, a row per epoch and sample."""
    task, augmentation = colored_task(name), AUGMENTATIONS[name]()
    images = task.train_samples.scaled(torch.from_numpy(task.shards.indices[1]))
    rng = generator(0, "augmentation", round=3, client=1)
    numbers = torch.from_numpy(rng.random((2, 9, augmentation.numbers)))
    order = generator(0, "batches", round=3, client=1)
    expected = []
    for row in numbers:
        places = torch.from_numpy(order.permutation(9))
        expected.append((augmentation.apply(images, row)[places] - MEAN) / STD)
    assert torch.equal(inputs_of(name, 1, round=3), torch.cat(expected))
    assert not torch.equal(inputs_of(name, 1, round=3), inputs_of("none", 1, round=3))


@pytest.mark.parametrize("name", CHANGING)
def test_batch_size_and_cohort_and_amount_of_work_do_not_matter(name: str):
    base = inputs_of(name, 1)
    for batch in (1, 3, 9, 100):
        assert torch.equal(inputs_of(name, 1, batch=batch), base)
    orders = inputs_of(name, 3, 1), inputs_of(name, 1, 3)
    assert torch.equal(orders[0][12:], base) and torch.equal(orders[1][:18], base)
    assert torch.equal(orders[0][:12], orders[1][18:])
    assert torch.equal(inputs_of(name, 1, J="J3e")[:18], base)
    # three batches of the first epoch and one of the second
    assert torch.equal(inputs_of(name, 1, J="J4"), base[:13])
