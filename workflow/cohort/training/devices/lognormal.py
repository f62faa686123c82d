"""Devices and links whose speeds spread over orders of magnitude."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.training.devices.devices import Devices, Speeds

BITS = 1e6 / 8  # bytes per second of a link of one Mbit/s


@dataclass(frozen=True, kw_only=True)
class LogNormal(Devices):
    """Devices whose compute and link speeds are drawn once, independently, from log-normal
    distributions: `lognormal-1` has a standard deviation of 1 of their natural logarithms, with
    which one client in twenty is more than 5 times as fast as the median, or as slow."""

    name: ClassVar[str] = "lognormal"
    spread: float = parameter(minimum=0, help="standard deviation of the logarithm of speeds")
    samples: float = parameter(
        100.0, exclusiveMinimum=0, help="samples that the median client trains on in a second"
    )
    megabits: float = parameter(
        10.0, exclusiveMinimum=0, help="Mbit/s of the median link, in both directions"
    )

    def speeds(self, clients: int, rng: np.random.Generator) -> Speeds:
        computing, sending = np.exp(self.spread * rng.normal(size=(2, clients)))
        return Speeds(self.samples * computing, self.megabits * BITS * sending)
