"""Everybody answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cohort.training.participation.participation import Participation


@dataclass(frozen=True, kw_only=True)
class Full(Participation):
    """Every client of the cohort does all its work."""

    name: ClassVar[str] = "full"
