"""What a run carries from one round to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cohort.records.history import History
from cohort.selection.selector import State
from cohort.training.updates import Weights


@dataclass
class RunState:
    """The whole state of a run after `round` rounds: what a checkpoint holds. `sessions` names the processes that worked on it."""

    weights: Weights
    server: Weights
    selector: State
    history: History = field(default_factory=History)
    round: int = 0
    diverged: bool = False
    sessions: list[dict[str, Any]] = field(default_factory=list)
