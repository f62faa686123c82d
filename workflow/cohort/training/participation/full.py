"""Full participation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cohort.training.participation.participation import Participation


@dataclass(frozen=True, kw_only=True)
class Full(Participation):
    """Every client of the cohort answers and does all its work."""

    name: ClassVar[str] = "full"
