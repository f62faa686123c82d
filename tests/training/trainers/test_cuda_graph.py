"""Captured steps give what the function gives, and warming up leaves no trace. Needs a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.training.precision import set_up
from cohort.training.trainers.batched.cuda_graph import CudaGraphed
from cohort.training.trainers.batched.trainer import BatchedTrainer
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Updates
from tests.training.small_task import small_task, train, trainer_of

GPU = torch.device("cuda")
needs_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


def sums(device: torch.device) -> tuple[CudaGraphed, Tensor]:
    total = torch.zeros(3, device=device)

    def add(values: Tensor) -> Tensor:
        total.add_(values.sum(dim=0))
        return total * 2

    return CudaGraphed(add, [total]), total


def check(device: torch.device) -> None:
    captured, total = sums(device)
    expected = torch.zeros(3)
    for rows in (2, 5, 2, 5, 1):  # two shapes occur twice
        values = torch.full((rows, 3), float(rows))
        expected += values.sum(dim=0)
        assert torch.equal(captured(values.to(device)).cpu(), 2 * expected)
        assert torch.equal(total.cpu(), expected)


def test_on_a_cpu_the_function_is_called():
    check(torch.device("cpu"))


@needs_a_gpu
def test_on_a_gpu_the_result_is_the_same():
    check(GPU)


@needs_a_gpu
@pytest.mark.parametrize("name", ["lenet5", "aml-lenet", "vgg11"])
def test_the_batched_trainer_matches_the_serial_one_on_a_gpu(name: str):
    """They agree to 1e-4 in float32. A repeated round is bit-identical."""
    rng = np.random.default_rng(8)
    values, labels = (
        torch.from_numpy(rng.random((64, 3, 32, 32), dtype=np.float32)),
        torch.from_numpy(rng.integers(0, 3, 64)),
    )
    set_up("float32", GPU)
    found: list[Updates] = []
    for kind in (SerialTrainer, BatchedTrainer):
        torch.manual_seed(3)
        model = MODELS[name]().build((3, 32, 32), 3).to(GPU)
        samples = Samples(
            values.to(GPU),
            labels.to(GPU),
            1.0,
            torch.zeros(1, device=GPU),
            torch.ones(1, device=GPU),
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
        weights, trainer = task.initial_weights(), trainer_of(task, kind)
        found += [
            train(trainer, weights, cohort, round)
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
