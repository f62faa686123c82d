"""Devices: how fast clients compute and send, which a simulation of time needs."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import Catalog, NameEncoded, parameter, parser_of


@dataclass(frozen=True)
class Speeds:
    """Per client: the samples that it trains on, and the bytes that its link moves, in a second."""

    samples: np.ndarray
    bytes: np.ndarray


class Devices(NameEncoded):
    """The devices on which clients train. This base class simulates no time."""

    def speeds(self, clients: int, rng: np.random.Generator) -> Speeds | None:
        """The speeds of all clients, which stay the same in all rounds; None without a simulation.
        The generator yields the same draws for every strategy."""
        return None


class Untimed(Devices):
    """Devices that simulate no time: every transfer and step takes 0 seconds."""

    name: ClassVar[str] = "untimed"


BYTES_PER_MEGABIT = 1e6 / 8


@dataclass(frozen=True, kw_only=True)
class LogNormal(Devices):
    """Devices whose compute and link speeds are drawn once, independently, from log-normal
    distributions: `lognormal-1` has a standard deviation of 1 of their natural logarithms, with
    which one client in twenty is more than 5 times as fast as the median, or as slow."""

    name: ClassVar[str] = "lognormal"
    spread: float = parameter(minimum=0, help="standard deviation of the logarithm of speeds")
    samples: float = parameter(100.0, exclusiveMinimum=0, help="samples per second of the median")
    megabits: float = parameter(10.0, exclusiveMinimum=0, help="Mbit/s of a median link, each way")

    def speeds(self, clients: int, rng: np.random.Generator) -> Speeds:
        computing, sending = np.exp(self.spread * rng.normal(size=(2, clients)))
        return Speeds(self.samples * computing, self.megabits * BYTES_PER_MEGABIT * sending)


DEVICES = Catalog("cohort.training.devices", Devices, (LogNormal, Untimed))
parse_devices = parser_of(DEVICES, "devices")
"""Build the devices that a name like `lognormal-1` describes."""
