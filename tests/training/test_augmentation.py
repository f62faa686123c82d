"""Augmentation in training: addressed by seed, round, client, place in the shard and pass, and by nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cohort.core.randomness import generator
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.samples import Samples
from cohort.training.evaluation import fingerprint
from cohort.training.procedures.federated import Federated
from cohort.training.task import Task
from cohort.training.trainers.serial import SerialTrainer
from tests.training.small_task import SIZES, small_task

MEAN, STD = 0.5, 0.25


class Watched(nn.Module):
    """A linear model that keeps what it sees, in training and in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3 * 8 * 8, 3, bias=False).double()
        nn.init.constant_(self.layer.weight, 0.01)
        self.seen: dict[bool, list[Tensor]] = {True: [], False: []}

    def forward(self, inputs: Tensor) -> Tensor:
        self.seen[self.training].append(inputs.clone())
        return self.layer(inputs.flatten(1))


def colored(count: int, seed: int) -> Samples:
    images = torch.from_numpy(
        np.random.default_rng(seed).integers(0, 256, (count, 3, 8, 8), dtype=np.uint8)
    )
    mean, std = (torch.full((3, 1, 1), value, dtype=torch.float64) for value in (MEAN, STD))
    return Samples(images, torch.arange(count) % 3, 255.0, mean, std)


def colored_task(augmentation: str, **settings: Any) -> Task:
    parts = {"model": Watched(), "train": colored(sum(SIZES), 0), "test": colored(20, 1)}
    return small_task(**parts, augmentation=augmentation, **({"J": "J2e", "batch": 4} | settings))


def seen(augmentation: str, *cohort: int, round: int = 1, **settings: Any) -> Tensor:
    """What the network sees of the cohort's samples, in order of training."""
    return train(colored_task(augmentation, **settings), *cohort, round=round)


def train(task: Task, *cohort: int, round: int = 1) -> Tensor:
    trainer = SerialTrainer(
        task.model, task.settings, task.objective, task.train_samples, task.shards.indices
    )
    trainer.train(task.initial_weights(), np.array(cohort), round)
    assert isinstance(task.model, Watched)
    return torch.cat(task.model.seen[True])


CHANGING = sorted(set(AUGMENTATIONS) - {"none"})


@pytest.mark.parametrize("name", CHANGING)
def test_the_network_sees_each_sample_with_the_numbers_of_its_address(name: str):
    """Client 1 holds nine samples and passes over them twice; its numbers are one draw, a row a pass and a sample."""
    task, augmentation = colored_task(name), AUGMENTATIONS[name]()
    images = task.train_samples.scaled(torch.from_numpy(task.shards.indices[1]))
    numbers = torch.from_numpy(
        generator(0, "augmentation", round=3, client=1).random((2, 9, augmentation.numbers))
    )
    order = generator(0, "batches", round=3, client=1)
    expected = []
    for row in numbers:
        places = torch.from_numpy(order.permutation(9))
        expected.append((augmentation.apply(images, row)[places] - MEAN) / STD)
    assert torch.equal(seen(name, 1, round=3), torch.cat(expected))
    assert not torch.equal(seen(name, 1, round=3), seen("none", 1, round=3))


@pytest.mark.parametrize("name", CHANGING)
def test_neither_batch_size_nor_the_rest_of_the_cohort_nor_the_amount_of_work_matters(name: str):
    base = seen(name, 1)
    for batch in (1, 3, 9, 100):
        assert torch.equal(seen(name, 1, batch=batch), base)
    both = seen(name, 3, 1), seen(name, 1, 3)
    assert (
        torch.equal(both[0][12:], base)
        and torch.equal(both[1][:18], base)
        and torch.equal(both[0][:12], both[1][18:])
    )
    assert torch.equal(seen(name, 1, J="J3e")[:18], base)
    assert torch.equal(
        seen(name, 1, J="J4"), base[:13]
    )  # three batches of the first pass and one of the second


@pytest.mark.parametrize("change", [{"round": 2}, {"seed": 1}])
def test_another_round_or_seed_changes_images_otherwise(change: dict[str, int]):
    """On a shard of one sample, so that the order cannot differ."""
    sizes = {"sizes": (1, 20)}
    base = seen("crop-flip", 0, J="J40e", **sizes)
    assert not torch.equal(base, seen("crop-flip", 0, J="J40e", **sizes, **change))
    assert len(base.unique(dim=0)) > 20  # 40 passes, 162 ways


def test_clients_change_equal_images_otherwise():
    twins = colored(2, 0)
    twins.values[1] = twins.values[0]
    task = small_task(
        model=Watched(),
        train=twins,
        test=colored(20, 1),
        sizes=(1, 1),
        augmentation="crop-flip",
        J="J40e",
    )
    first, second = train(task, 0, 1).split(40)
    assert not torch.equal(first, second)


def test_images_are_standardized_after_they_were_moved():
    """White images with a black border: white is (1 - 0.5) / 0.25 = 2 and black -2."""
    task = colored_task("crop-flip")
    task.train_samples.values.fill_(255)
    assert train(task, 1).unique().tolist() == [-2, 2]


@pytest.mark.parametrize("name", CHANGING)
def test_evaluation_sees_samples_as_they_are(name: str):
    task = colored_task(name)
    list(Federated().rounds(task, Federated().begin(task)))
    assert torch.equal(torch.cat(task.model.seen[False]), task.test_samples.inputs(task.test))


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_a_run_is_the_same_twice_to_the_last_bit(name: str):
    states = []
    for _ in range(2):
        task = colored_task(name, rounds=2)
        *_, state = Federated().rounds(task, Federated().begin(task))
        states.append(fingerprint(state.weights))
        torch.rand(5)
    assert states[0] == states[1]
