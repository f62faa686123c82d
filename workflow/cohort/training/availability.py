"""Availability: which clients can be chosen in a round."""

import csv
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cohort.core import UserError, files, randomness, user_files
from cohort.core.components import Catalog, NameEncoded, parameter, parser_of
from cohort.records.history import History
from cohort.settings import Settings


class Availability(NameEncoded):
    """Says which clients are available; in this base class all. It keeps no state: the answer
    follows from seed, client, round and hour, so every strategy meets the same one."""

    @property
    def idle_hours(self) -> float:
        """How long a round without any available client lasts on the simulated clock."""
        return 1.0

    def check(self, clients: int) -> None:
        """Raise ValueError if it is not defined for so many clients."""

    def present(self, clients: int, seed: int, round: int, hour: float) -> np.ndarray:
        """Whether each client is available when a round begins. `hour` counts from 0: on the
        simulated clock, or where no time is simulated, one a round."""
        return np.ones(clients, dtype=bool)


class Always(Availability):
    """Every client can be chosen in every round."""

    name: ClassVar[str] = "always"


@dataclass(frozen=True, kw_only=True)
class Markov(Availability):
    """Each client is available for `up` rounds on average, then not for `down`, and so on: a Markov
    chain of two states (`markov-4-4`) that is stationary from the first round.

    In each round a client is drawn anew from the stationary distribution with a probability of
    1/up + 1/down, and otherwise stays as it was: its state is that of the last such draw.
    """

    name: ClassVar[str] = "markov"
    up: float = parameter(minimum=2, help="mean number of rounds in a row in which a client is on")
    down: float = parameter(minimum=2, help="mean number of rounds in a row in which it is off")

    def present(self, clients: int, seed: int, round: int, hour: float) -> np.ndarray:
        share, present = self.up / (self.up + self.down), np.zeros(clients, dtype=bool)
        undecided = np.ones(clients, dtype=bool)
        while undecided.any():
            rng = randomness.generator(seed, "availability", round=round)
            renewals, draws = rng.random((2, clients))
            renewed = undecided & ((renewals < 1 / self.up + 1 / self.down) | (round == 0))
            present |= renewed & (draws < share)
            undecided &= ~renewed
            round -= 1
        return present


ZONES = 24


@dataclass(frozen=True, kw_only=True)
class Diurnal(Availability):
    """Each client lives in one of 24 time zones, drawn once, and is available for the first `share`
    of its day: `diurnal-0.3`. A round is an hour where no time is simulated."""

    name: ClassVar[str] = "diurnal"
    share: float = parameter(exclusiveMinimum=0, exclusiveMaximum=1, help="share of the day")
    day: float = parameter(24.0, exclusiveMinimum=0, help="hours of a day")

    @property
    def idle_hours(self) -> float:
        return self.day / ZONES

    def present(self, clients: int, seed: int, round: int, hour: float) -> np.ndarray:
        zones = randomness.generator(seed, "availability").integers(ZONES, size=clients)
        present: np.ndarray = (hour * ZONES / self.day + zones) % ZONES < self.share * ZONES
        return present


@dataclass(frozen=True, kw_only=True)
class Trace(Availability):
    """Follows a user's table: `trace-phones-0123456789ab` is `my/availability/phones.csv`, whose
    SHA-256 begins with these digits. A row says between which hours (`start`, `end`) a `device` is
    available; after the last end the table repeats. Each client is one device, drawn once."""

    name: ClassVar[str] = "trace"
    table: str = parameter(help="the name of the table, without .csv")
    checksum: str = parameter(help="the first 12 hex digits of its SHA-256")

    def spells(self) -> tuple[np.ndarray, np.ndarray]:
        """The device of each row of the table, numbered from 0, and its start and end (2, row);
        UserError for another table than that of the checksum."""
        file = user_files.folder() / "availability" / f"{self.table}.csv"
        if not file.is_file():
            raise UserError(f"availability '{self}': there is no file {file}")
        if (digits := files.sha256(file)[:12]) != self.checksum:
            raise UserError(f"availability '{self}': write trace-{self.table}-{digits} for {file}")
        return read_spells(file.resolve(), digits)

    def check(self, clients: int) -> None:
        if (devices := self.spells()[0].max() + 1) < clients:
            raise ValueError(f"has {devices} devices for {clients} clients")

    def present(self, clients: int, seed: int, round: int, hour: float) -> np.ndarray:
        device, (start, end) = self.spells()
        devices = randomness.generator(seed, "availability").permutation(device.max() + 1)[:clients]
        now = hour % end.max()
        return np.isin(devices, device[(start <= now) & (now < end)])


COLUMNS = ["device", "start", "end"]


@functools.cache
def read_spells(file: Path, digits: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a table with the columns device, start and end, as `Trace.spells` returns it, once for
    each checksum. UserError for an unusable table."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
            raise UserError(f"{file}: has no column {missing[0]}; it needs {', '.join(COLUMNS)}")
        table = [(row["device"], row["start"], row["end"]) for row in rows]
    times = []
    for line, (device, start, end) in enumerate(table, start=2):
        if not device:
            raise UserError(f"{file}, line {line}: has no device")
        try:
            times.append((float(start), float(end)))
        except (TypeError, ValueError):
            raise UserError(f"{file}, line {line}: start and end must be hours") from None
        if not 0 <= times[-1][0] < times[-1][1] < np.inf:
            raise UserError(f"{file}, line {line}: {start} to {end} is no time from 0 on")
    if not table:
        raise UserError(f"{file}: has no rows")
    devices = np.unique([device for device, *_ in table], return_inverse=True)[1]
    return devices, np.array(times).T  # (row) and (2, row)


def available_clients(settings: Settings, history: History, round: int) -> np.ndarray:
    """The clients that can be chosen in a round, given the history of the rounds before it."""
    elapsed = history.cost.get("simulated_seconds")
    hour = round - 1.0
    if elapsed:
        hour = sum(seconds for earlier, seconds in elapsed if earlier < round) / 3600
    availability, clients = parse_availability(settings.availability), settings.clients
    present = np.asarray(availability.present(clients, settings.seed, round, hour))
    if present.dtype != bool or present.shape != (clients,):
        form = f"{present.dtype} of shape {present.shape}"
        raise ValueError(f"present returned {form}, not {clients} times true or false")
    return np.flatnonzero(present)


_CLASSES = Always, Diurnal, Markov, Trace
AVAILABILITIES = Catalog("cohort.training.availability", Availability, _CLASSES)
parse_availability = parser_of(AVAILABILITIES, "availability")
"""Build the availability that a name like `markov-4-4` describes."""
