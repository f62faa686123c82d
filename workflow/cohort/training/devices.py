"""Devices: how fast clients compute and send, which a simulation of time needs."""

import csv
import functools
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cohort.core import user_files
from cohort.core.components import Catalog, NameEncoded, parameter, parse
from cohort.core.errors import UserError


@dataclass(frozen=True)
class Speeds:
    """How many samples each client trains on in a second (client), and how many bytes its link
    sends or receives in one (client)."""

    samples: np.ndarray
    bytes: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Devices(NameEncoded):
    """The devices on which clients train. This base class simulates no time."""

    def speeds(self, clients: int, rng: np.random.Generator) -> Speeds | None:
        """The speeds of all clients, which stay the same in all rounds; None without a simulation.
        The generator yields the same draws for every strategy."""
        return None


@dataclass(frozen=True, kw_only=True)
class Untimed(Devices):
    """Devices that simulate no time: every transfer and step takes 0 seconds."""

    name: ClassVar[str] = "untimed"


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


COLUMNS = ("speed", "link")


@dataclass(frozen=True, kw_only=True)
class Trace(Devices):
    """Speeds from a CSV file: `trace-phones` reads `my/training/devices/phones.csv`, with a column
    `speed` in samples per second and a column `link` in Mbit/s. If it has a row for each client,
    these are theirs; otherwise rows are drawn, once for each client. Its numbers are part of a
    run's digest."""

    name: ClassVar[str] = "trace"
    file: str = parameter(help="the name of the file, without .csv")

    def version(self) -> int:
        return int(hashlib.sha256(self.table.astype("<f8").tobytes()).hexdigest()[:12], 16)

    def speeds(self, clients: int, rng: np.random.Generator) -> Speeds:
        count = len(self.table)
        rows = np.arange(count) if count == clients else rng.integers(count, size=clients)
        speed, link = self.table[rows].T
        return Speeds(speed, link * BITS)

    @property
    def path(self) -> Path:
        """The CSV file."""
        return user_files.subfolder("cohort.training.devices") / f"{self.file}.csv"

    @property
    def table(self) -> np.ndarray:
        """Speed and link of each row. Raise UserError if the file is missing or wrong."""
        if not self.path.is_file():
            raise UserError(
                f"{self.path}: no such file; client_devices '{self}' reads from it the columns "
                "speed (samples per second) and link (Mbit/s)"
            )
        with self.path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            reader = csv.DictReader(lines)
            if missing := sorted(set(COLUMNS) - set(reader.fieldnames or ())):
                raise UserError(f"{self.path}: has no column '{missing[0]}'")
            rows = [self._numbers(row, reader.line_num) for row in reader]
        if not rows:
            raise UserError(f"{self.path}: has no row below its head")
        return np.array(rows)

    def _numbers(self, row: Mapping[str, str | None], line: int) -> list[float]:
        """Speed and link of a row. Raise UserError unless both are positive."""
        try:
            numbers = [float(row[name] or "") for name in COLUMNS]
        except ValueError:
            numbers = [math.nan]
        if not all(0 < value < math.inf for value in numbers):
            texts = " and ".join(f"'{row[name] or ''}'" for name in COLUMNS)
            raise UserError(
                f"{self.path}, line {line}: speed and link are {texts}, but must be numbers above 0"
            )
        return numbers


DEVICES = Catalog("cohort.training.devices", Devices, (LogNormal, Trace, Untimed))


@functools.cache
def parse_devices(text: str) -> Devices:
    """Build the devices that a name like `lognormal-1` describes."""
    return parse(text, DEVICES, "devices")
