"""Participation: which clients of a cohort answer, and with how much work."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import Catalog, NameEncoded, parameter, parser_of
from cohort.core.metric import Metric


@dataclass(frozen=True, kw_only=True)
class Participation(NameEncoded):
    """A model of faults: which clients of a cohort respond, and how much of the local work J they
    complete; in this base class all clients, and all of it. Dropouts and stragglers are drawn from
    random generators of their own, so that every strategy meets the same ones."""

    metrics: ClassVar[Mapping[str, Metric]] = {}
    """The metrics that it records itself, by recorded name."""

    def responds(self, cohort: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A Boolean mask: whether each client of the cohort responds."""
        return np.ones(len(cohort), dtype=bool)

    def efforts(self, clients: int, most: int, rng: np.random.Generator) -> np.ndarray:
        """The number of epochs (or steps), of the `most` of J, that each client of the federation
        completes. The generator yields the same draws in every round."""
        return np.full(clients, most)


class Full(Participation):
    """Every client of the cohort answers and does all its work."""

    name: ClassVar[str] = "full"


@dataclass(frozen=True, kw_only=True)
class Dropout(Participation):
    """A fixed share of every cohort, rounded down, drops out: `dropout-0.3` is three of ten."""

    name: ClassVar[str] = "dropout"
    share: float = parameter(exclusiveMinimum=0, exclusiveMaximum=1, help="share that drops out")

    def responds(self, cohort: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        gone = rng.choice(len(cohort), math.floor(self.share * len(cohort) + 1e-9), replace=False)
        return ~np.isin(np.arange(len(cohort)), gone)


@dataclass(frozen=True, kw_only=True)
class BernoulliDropout(Participation):
    """Each client of the cohort drops out independently with a probability; if all would, the first
    one stays."""

    name: ClassVar[str] = "bernoulli"
    probability: float = parameter(exclusiveMinimum=0, exclusiveMaximum=1, help="of dropping out")

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

    def efforts(self, clients: int, most: int, rng: np.random.Generator) -> np.ndarray:
        slow = rng.permutation(clients)[: round(self.share * clients)]
        managed = np.full(clients, most)
        managed[slow] = rng.integers(1, most, len(slow), endpoint=True)
        return managed


_CLASSES = BernoulliDropout, Dropout, Full, Stragglers
PARTICIPATIONS = Catalog("cohort.training.participation", Participation, _CLASSES)
parse_participation = parser_of(PARTICIPATIONS, "participation")
"""Build the participation that a name like `dropout-0.3` describes."""
