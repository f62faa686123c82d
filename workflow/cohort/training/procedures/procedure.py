"""What a procedure is: how a run begins and how it goes on, one round at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.components import Component

if TYPE_CHECKING:
    from cohort.training.state import RunState
    from cohort.training.task import Task


@dataclass(frozen=True, kw_only=True)
class Procedure(Component):
    """A run as a sequence of states. It keeps nothing of its own, so that a run can go on from any state."""

    round_name: ClassVar[str] = "Round"  # what figures call a round

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise ValueError when it cannot work with these settings."""

    def begin(self, task: Task) -> RunState:
        """The state before the first round."""
        raise NotImplementedError

    def rounds(self, task: Task, state: RunState) -> Iterator[RunState]:
        """The states after each round that is still to do; ends early when the run diverges."""
        raise NotImplementedError
