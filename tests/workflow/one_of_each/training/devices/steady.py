"""Everybody trains on ten samples in a second, over links that take no time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.training.devices import Devices, Speeds


@dataclass(frozen=True, kw_only=True)
class Steady(Devices):
    """All clients are equally fast."""

    name: ClassVar[str] = "steady"

    def speeds(self, clients: int, rng: np.random.Generator) -> Speeds:
        return Speeds(np.full(clients, 10.0), np.full(clients, np.inf))
