"""What a procedure is: how a run begins and how it goes on, one round at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cohort.core.component_names import Named

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from cohort.training.state import RunState
    from cohort.training.task import Task


class Load(NamedTuple):
    """What an estimate of a run's cost must know of its procedure: the rounds in which clients do the local work J, how many batches each
    client of a cohort passes forward through one network in all the others together, and how many networks the global model consists of."""

    rounds: int
    passes: int = 0
    networks: int = 1


@dataclass(frozen=True, kw_only=True)
class Procedure(Named):
    """A run as a sequence of states. It keeps nothing of its own, so that a run can go on from any state."""

    round_name: ClassVar[str] = "Round"  # what figures call a round

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise ValueError when it cannot work with these settings and parts of a strategy."""

    def load(self, rounds: int) -> Load:
        """How much work so many rounds are."""
        return Load(rounds)

    def begin(self, task: Task) -> RunState:
        """The state before the first round."""
        raise NotImplementedError

    def rounds(self, task: Task, state: RunState) -> Iterator[RunState]:
        """The states after each round that is still to do; ends early when the run diverges."""
        raise NotImplementedError

    def network(self, task: Task, round: int) -> nn.Module:
        """What the state's weights are those of after this round."""
        return task.model

    def of_clients(self, state: RunState) -> dict[str, np.ndarray]:
        """What else the record says of each client."""
        return {}
