"""Products that are less precise than float32's: what it does to a round, and that nothing else happens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.training.precision import set_up
from cohort.training.trainers.base import Trainer
from cohort.training.trainers.batched.trainer import BatchedTrainer
from cohort.training.trainers.serial import SerialTrainer
from tests.training.small_task import small_task

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    set_up("float32", CPU)


def after_a_round(precision: str, kind: type[Trainer]) -> Tensor:
    """All weights of a client that trained on 24 pictures for two epochs."""
    rng = np.random.default_rng(8)
    pictures = torch.from_numpy(rng.random((24, 3, 32, 32), dtype=np.float32))
    train = Samples(
        pictures, torch.from_numpy(rng.integers(0, 3, 24)), 1.0, torch.zeros(1), torch.ones(1)
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = MODELS["lenet5"]().build((3, 32, 32), 3)
    task = small_task(
        model=model,
        train=train,
        test=train,
        sizes=(12, 12),
        J="J2e",
        batch=4,
        lr=0.05,
        precision=precision,
    )
    set_up(precision, CPU)
    updates = kind(model, task.settings, task.objective, train, task.shards.indices).train(
        task.initial_weights(), np.array([0, 1]), 1
    )
    return torch.cat([tensor.flatten() for tensor in updates.of_client(0).values()])


@pytest.mark.parametrize("kind", [SerialTrainer, BatchedTrainer])
def test_bfloat16_is_near_float32_in_weights_of_float32(kind: type[Trainer]):
    exact, rough = after_a_round("float32", kind), after_a_round("bfloat16", kind)
    assert rough.dtype == torch.float32
    assert 1e-5 < (rough - exact).norm() / exact.norm() < 1e-2
    assert torch.equal(after_a_round("float32", kind), exact)


def test_tf32_is_a_matter_of_gpus():
    for precision in ("tf32", "float32", "bfloat16"):
        set_up(precision, CPU)
        assert (
            torch.backends.cudnn.allow_tf32
            == torch.backends.cuda.matmul.allow_tf32
            == (precision == "tf32")
        )
    assert torch.equal(
        after_a_round("tf32", SerialTrainer), after_a_round("float32", SerialTrainer)
    )
