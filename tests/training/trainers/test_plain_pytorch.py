"""A run by the serial trainer, asked for or needed, calls no native code, not even to evaluate."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from torch import Tensor, nn

from cohort.data.samples import Samples
from cohort.needs import NEEDS
from cohort.selection.selector import Screening
from cohort.selection.simple import Random
from cohort.training import evaluation
from cohort.training.evaluators import EVALUATORS
from cohort.training.job.train import TRAINERS
from cohort.training.updates import Weights
from tests.training.small_task import run, small_task

EVERY_ROUND = {f"evaluate_{name}": 1 for name in ("every", "holdout", "local", "own")}
EVERY_ROUND |= {"evaluators": "cohort_samples 1"}


class NativeCall(BaseException):
    """Native code was asked for outputs. No error, which would be explained as the need's."""


@pytest.fixture
def no_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(model: nn.Module, weights: Weights, samples: Samples, indices: Tensor) -> None:
        raise NativeCall

    monkeypatch.setattr(evaluation, "predict", refuse)


@dataclass(frozen=True, kw_only=True)
class Curious(Random, Screening):
    """Needs all that there is."""

    needs: ClassVar[frozenset[str]] = frozenset(NEEDS)


def run_everything(trainer: str, **settings: Any) -> set[str]:
    """What a run of two rounds measures, with every evaluator and every need."""
    task = small_task(validation=(0, 1, 2, 3), rounds=2, cohort=2, **EVERY_ROUND, **settings)
    shards = replace(
        task.shards, holdouts=[np.array([client]) for client in range(task.settings.clients)]
    )
    return set(run(replace(task, shards=shards, trainer=TRAINERS[trainer])).history.metrics)


@pytest.mark.parametrize("procedure", ["federated", "federated-profiled1"])
def test_neither_evaluators_nor_needs_call_native_code(procedure: str, no_native_code: None):
    measured = run_everything("serial", procedure=procedure, selector=Curious(), evaluate_next=1)
    for evaluator in EVALUATORS.values():
        assert set(evaluator.metrics) <= measured, evaluator.name
    with pytest.raises(NativeCall):
        run_everything("native", selector=Curious())


@pytest.mark.parametrize("procedure", ["centralized", "concat-2", "sequential"])
def test_nor_does_any_other_procedure(procedure: str, no_native_code: None):
    run_everything("serial", procedure=procedure)
