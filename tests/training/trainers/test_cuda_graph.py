"""Recorded steps on a GPU: each gives what the function gives, and warming up leaves no trace. Skipped where there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.training.precision import set_up
from cohort.training.trainers.batched.cuda_graph import Recorded
from cohort.training.trainers.batched.trainer import BatchedTrainer
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Updates
from tests.training.small_task import small_task

CARD = torch.device("cuda")
needs_a_card = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


def sums(device: torch.device) -> tuple[Recorded, Tensor]:
    total = torch.zeros(3, device=device)

    def add(values: Tensor) -> Tensor:
        total.add_(values.sum(dim=0))
        return total * 2

    return Recorded(add, [total]), total


def check(device: torch.device) -> None:
    recorded, total = sums(device)
    expected = torch.zeros(3)
    for rows in (2, 5, 2, 5, 1):  # two shapes come back
        values = torch.full((rows, 3), float(rows))
        expected += values.sum(dim=0)
        assert torch.equal(recorded(values.to(device)).cpu(), 2 * expected)
        assert torch.equal(total.cpu(), expected)


def test_on_a_cpu_it_is_the_function():
    check(torch.device("cpu"))


@needs_a_card
def test_on_a_gpu_it_gives_the_same():
    check(CARD)


@needs_a_card
@pytest.mark.parametrize("name", ["lenet5", "aml-lenet", "vgg11"])
def test_the_batched_trainer_on_a_gpu_is_the_serial_one(name: str):
    """To 1e-4 of each client's weights in float32; twice it gives the same bits, though other rounds came between."""
    rng = np.random.default_rng(8)
    values, labels = (
        torch.from_numpy(rng.random((64, 3, 32, 32), dtype=np.float32)),
        torch.from_numpy(rng.integers(0, 3, 64)),
    )
    set_up("float32", CARD)
    found: list[Updates] = []
    for kind in (SerialTrainer, BatchedTrainer):
        torch.manual_seed(3)
        model = MODELS[name]().build((3, 32, 32), 3).to(CARD)
        samples = Samples(
            values.to(CARD),
            labels.to(CARD),
            1.0,
            torch.zeros(1, device=CARD),
            torch.ones(1, device=CARD),
        )
        settings = {
            "sizes": (20, 30, 14),
            "J": "J2e",
            "batch": 8,
            "lr": 0.05,
            "momentum": 0.9,
            "precision": "float32",
        }
        task = small_task(model=model, train=samples, test=samples, **settings)
        weights, trainer = (
            task.initial_weights(),
            kind(model, task.settings, task.objective, samples, task.shards.indices),
        )
        found += [
            trainer.train(weights, np.array(cohort), round)
            for round, cohort in ((1, [0, 1, 2]), (2, [2, 1]), (1, [0, 1, 2]))
        ]
    serial, batched = found[:3], found[3:]
    for ours, theirs in zip(batched, serial, strict=True):
        for row in range(len(ours.clients)):
            for tensor, other in zip(
                ours.of_client(row).values(), theirs.of_client(row).values(), strict=True
            ):
                assert (tensor - other).norm() < 1e-4 * other.norm()
    assert all(
        torch.equal(batched[0].weights[name], batched[2].weights[name])
        for name in batched[0].weights
    )
