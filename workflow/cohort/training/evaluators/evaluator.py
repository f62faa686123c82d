"""The base of all evaluators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.cell.evaluations import evaluated_rounds, plans_by_name
from cohort.core.components import Component
from cohort.core.metric import Metric

if TYPE_CHECKING:
    from torch import nn

    from cohort.training.cell import Cell
    from cohort.training.state import RunState
    from cohort.training.task import Task
    from cohort.training.updates import Updates


@dataclass(frozen=True, kw_only=True)
class Evaluator(Component):
    """Evaluates a run in the rounds of a plan and records the `metrics` that it declares."""

    setting: ClassVar[str] = "evaluators"
    """The setting with its plan of rounds: one of its own, or `evaluators`, which has the plan of
    each evaluator that it names."""

    metrics: ClassVar[Mapping[str, Metric]] = {}
    """The metrics that it records, by recorded name."""

    def applies(self, task: Task) -> bool:
        """Whether the task has samples to evaluate on."""
        return True

    def check(self, cell: Cell) -> None:
        """Raise ValueError if this evaluator cannot evaluate a cell that asks for it."""

    def plan(self, cell: Cell) -> int | str:
        """The rounds to evaluate, in the format of the setting `evaluate_every`; 0 for none."""
        plan: int | str = getattr(cell.settings, self.setting)
        return plans_by_name(str(plan)).get(self.name, 0) if self.setting == "evaluators" else plan

    def is_due(self, task: Task, state: RunState) -> bool:
        """Whether to evaluate after the round of `state`: in the planned rounds, unless the run has
        diverged or there is nothing to evaluate on."""
        is_planned = state.round in self.rounds(task)
        return is_planned and not state.diverged and self.applies(task)

    def rounds(self, cell: Cell) -> tuple[int, ...]:
        """The rounds of a cell to evaluate, in order, always with the last; none without a plan."""
        return evaluated_rounds(self.plan(cell), cell.settings.rounds)

    def evaluate(
        self, task: Task, network: nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        """Evaluate a round and return its metrics by name. `network` is the module for the state's
        weights; `updates` holds the local models of the cohort, None if the procedure has none."""
        raise NotImplementedError


def evaluation_metrics(split: str, title: str, samples: str) -> Mapping[str, Metric]:
    """Declarations of the metrics of an `Evaluation` on a split, by recorded name. Figures call the
    split `title`, and its samples `samples`."""
    return {
        f"{split}_accuracy": Metric(f"{title} accuracy", "%", 100, digits=2, better="high"),
        f"{split}_loss": Metric(f"{title} loss", better="low"),
        f"{split}_calibration_error": Metric(
            f"Calibration error on {samples}", "%", 100, digits=2, better="low"
        ),
        f"{split}_classes_named": Metric(f"Classes named on {samples}", digits=0, whole=True),
    }
