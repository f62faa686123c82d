"""The state of a run between two rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cohort.records.history import History
from cohort.selection.selector import State
from cohort.training.updates import Weights


@dataclass
class RunState:
    """Everything a run carries from round to round, and so everything a checkpoint holds.

    `server` is the memory of the server rule (or of an optimizer that lives across rounds),
    `selector` that of the selector, `reports` what clients reported once before the first round.
    `sessions` describes the processes that worked on the run.
    """

    weights: Weights
    server: Weights
    selector: State
    history: History = field(default_factory=History)
    round: int = 0
    diverged: bool = False
    sessions: list[dict[str, Any]] = field(default_factory=list)
    reports: dict[str, np.ndarray] = field(default_factory=dict)
