"""The base of all evaluators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.cell.evaluations import is_evaluated
from cohort.core.components import Component
from cohort.core.metric import Metric

if TYPE_CHECKING:
    from torch import nn

    from cohort.cell.settings import Settings
    from cohort.training.state import RunState
    from cohort.training.task import Task
    from cohort.training.updates import Updates


@dataclass(frozen=True, kw_only=True)
class Evaluator(Component):
    """Evaluates a run in the rounds of its own plan, under metric names of its own."""

    metrics: ClassVar[Mapping[str, Metric]] = {}
    """What it records of its own, by the recorded name."""

    def applies(self, task: Task) -> bool:
        """Whether a run has what it evaluates on."""
        return True

    def plan(self, settings: Settings) -> int | str:
        """In which rounds it evaluates, written like the setting `evaluate_every`; 0 for never."""
        return settings.evaluate_every

    def is_due(self, task: Task, state: RunState) -> bool:
        """Whether it evaluates after the round that the state has reached: as planned, and always
        after the last round."""
        plan, last = self.plan(task.settings), task.settings.rounds
        if not plan or not self.applies(task):
            return False
        return is_evaluated(plan, state.round) or state.round == last or state.diverged

    def evaluate(
        self, task: Task, network: nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        """Its metrics. `network` is what the state's weights belong to, `updates` are the cohort's
        local models, where the procedure has any."""
        raise NotImplementedError


def metrics_of(split: str, title: str, samples: str) -> Mapping[str, Metric]:
    """The metrics of one evaluation of a model, by name."""
    return {
        f"{split}_accuracy": Metric(f"{title} accuracy", "%", 100, digits=2, better="high"),
        f"{split}_loss": Metric(f"{title} loss", better="low"),
        f"{split}_calibration_error": Metric(
            f"Calibration error on {samples}", "%", 100, digits=2, better="low"
        ),
        f"{split}_classes_named": Metric(f"Classes named on {samples}", digits=0),
    }
