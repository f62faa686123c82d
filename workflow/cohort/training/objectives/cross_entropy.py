"""Plain cross-entropy, as in FedAvg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cohort.training.objectives.objective import Objective


@dataclass(frozen=True, kw_only=True)
class CrossEntropy(Objective):
    """Softmax cross-entropy."""

    name: ClassVar[str] = "cross-entropy"
