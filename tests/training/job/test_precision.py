"""Reduced precision: what it does to a round, and that float32 is unaffected by it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from cohort.core.errors import UserError
from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.training.job.machine import set_up
from cohort.training.task import Task
from cohort.training.trainers.base import Trainer
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.trainers.stacked import StackedTrainer
from tests.training.small_task import small_task, train, trainer_of

CPU = torch.device("cpu")


pytestmark = pytest.mark.usefixtures("float32_again")


def image_task(precision: str) -> Task:
    """A task of two clients that train on 12 images each for two epochs."""
    rng = np.random.default_rng(8)
    pictures = torch.from_numpy(rng.random((24, 3, 32, 32), dtype=np.float32))
    samples = Samples(
        pictures, torch.from_numpy(rng.integers(0, 3, 24)), 1.0, torch.zeros(1), torch.ones(1)
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = MODELS["lenet5"]().build((3, 32, 32), 3)
    set_up(precision, CPU)
    settings = {"sizes": (12, 12), "J": "J2e", "batch": 4, "lr": 0.05, "precision": precision}
    return small_task(model=model, train=samples, test=samples, **settings)


def after_a_round(precision: str, kind: type[Trainer]) -> Tensor:
    """All weights of a client after a round."""
    task = image_task(precision)
    updates = train(trainer_of(task, kind), task.initial_weights(), [0, 1])
    return torch.cat([tensor.flatten() for tensor in updates.client_weights(0).values()])


@pytest.mark.parametrize("kind", [SerialTrainer, StackedTrainer])
def test_bfloat16_is_close_to_float32_and_keeps_float32_weights(kind: type[Trainer]):
    exact, rough = after_a_round("float32", kind), after_a_round("bfloat16", kind)
    assert rough.dtype == torch.float32
    assert 1e-5 < (rough - exact).norm() / exact.norm() < 1e-2
    assert torch.equal(after_a_round("float32", kind), exact)


def test_tf32_is_for_gpus_alone():
    """A record must not say tf32 of a run whose products were those of float32."""
    with pytest.raises(UserError, match=r"^precision is tf32, but a CPU computes"):
        set_up("tf32", CPU)
    for precision, device in (("tf32", torch.device("cuda")), ("float32", CPU), ("bfloat16", CPU)):
        set_up(precision, device)
        assert (
            torch.backends.cudnn.allow_tf32
            == torch.backends.cuda.matmul.allow_tf32
            == (precision == "tf32")
        )
