"""Participation: which clients of a cohort answer, and with how much work."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import Catalog, NameEncoded, parameter, parser_of
from cohort.data.sampling import floor_share


class Participation(NameEncoded):
    """A model of faults: which clients of a cohort respond, and how much of the local work J they
    complete; in this base class all clients, and all of it. Dropouts and stragglers are drawn from
    random generators of their own, so that every strategy meets the same ones."""

    goes_by_time: ClassVar[bool] = False
    """Whether updates can be too late, for which time must be simulated."""

    @property
    def patience(self) -> float:
        """The simulated seconds that the server waits at least, if updates are missing."""
        return 0.0

    def invited(self, cohort: int, clients: int) -> int:
        """How many clients to choose for a cohort of this size, out of so many clients."""
        return cohort

    def check(self, seconds: np.ndarray) -> None:
        """Raise ValueError if no round can go well when the updates of the federation's clients
        arrive after these simulated seconds (client)."""

    def in_time(self, seconds: np.ndarray, cohort: int) -> np.ndarray:
        """A Boolean mask: whether each update is used, given when it arrives in simulated seconds
        (client of the cohort). At least one is."""
        return np.ones(len(seconds), dtype=bool)

    def responds(self, cohort: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A Boolean mask: whether each client of the cohort responds."""
        return np.ones(len(cohort), dtype=bool)

    def efforts(self, clients: int, amount: int, rng: np.random.Generator) -> np.ndarray:
        """The number of epochs (or steps), of the `amount` of J, that each client of the federation
        completes. The generator yields the same draws in every round."""
        return np.full(clients, amount)


class Full(Participation):
    """Every client of the cohort answers and does all its work."""

    name: ClassVar[str] = "full"


@dataclass(frozen=True, kw_only=True)
class Dropout(Participation):
    """A fixed share of every cohort, rounded down, drops out: `dropout-0.3` is three of ten."""

    name: ClassVar[str] = "dropout"
    share: float = parameter(exclusiveMinimum=0, exclusiveMaximum=1, help="share that drops out")

    def responds(self, cohort: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        gone = rng.choice(len(cohort), floor_share(len(cohort), self.share), replace=False)
        return ~np.isin(np.arange(len(cohort)), gone)


@dataclass(frozen=True, kw_only=True)
class BernoulliDropout(Participation):
    """Each client of the cohort drops out independently with a probability, but never all."""

    name: ClassVar[str] = "bernoulli"
    probability: float = parameter(exclusiveMinimum=0, exclusiveMaximum=1, help="dropout rate")

    def responds(self, cohort: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        stays = rng.random(len(cohort)) >= self.probability
        stays[0] |= not stays.any()
        return stays


@dataclass(frozen=True, kw_only=True)
class Stragglers(Participation):
    """A fixed share of all clients manages only some epochs (or steps) of J: uniformly drawn from 1
    to all, once. Their updates count like any other."""

    name: ClassVar[str] = "stragglers"
    share: float = parameter(exclusiveMinimum=0, maximum=1, help="share of clients that straggle")

    def efforts(self, clients: int, amount: int, rng: np.random.Generator) -> np.ndarray:
        slow = rng.permutation(clients)[: round(self.share * clients)]
        managed = np.full(clients, amount)
        managed[slow] = rng.integers(1, amount, len(slow), endpoint=True)
        return managed


@dataclass(frozen=True, kw_only=True)
class OverSelection(Participation):
    """More clients are chosen than a cohort has, and the updates that arrive first are used:
    `overselect-1.3` chooses 13 for a cohort of 10."""

    name: ClassVar[str] = "overselect"
    goes_by_time: ClassVar[bool] = True
    factor: float = parameter(exclusiveMinimum=1, help="clients chosen, in multiples of a cohort")

    def invited(self, cohort: int, clients: int) -> int:
        return min(math.ceil(self.factor * cohort - 1e-9), clients)

    def in_time(self, seconds: np.ndarray, cohort: int) -> np.ndarray:
        return np.isin(np.arange(len(seconds)), np.argsort(seconds, kind="stable")[:cohort])


@dataclass(frozen=True, kw_only=True)
class Deadline(Participation):
    """Updates are used that arrive within so many simulated seconds (`deadline-60`), and the round
    ends then if any are missing. If nobody is in time, the server waits for the first."""

    name: ClassVar[str] = "deadline"
    goes_by_time: ClassVar[bool] = True
    seconds: float = parameter(exclusiveMinimum=0, help="from sending the model to its arrival")

    @property
    def patience(self) -> float:
        return self.seconds

    def check(self, seconds: np.ndarray) -> None:
        if self.seconds < (first := seconds.min()):
            raise ValueError(f"nobody can meet it: the fastest takes at least {first:.3g} seconds")

    def in_time(self, seconds: np.ndarray, cohort: int) -> np.ndarray:
        return seconds <= max(self.seconds, seconds.min())


_CLASSES = BernoulliDropout, Deadline, Dropout, Full, OverSelection, Stragglers
PARTICIPATIONS = Catalog("cohort.training.participation", Participation, _CLASSES)
parse_participation = parser_of(PARTICIPATIONS, "participation")
"""Build the participation that a name like `dropout-0.3` describes."""
