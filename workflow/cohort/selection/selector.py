"""What a selector is.

A selector sees the federation only through its declared needs, so that what a strategy costs beyond training is recorded, not hidden.
What it remembers between rounds is plain arrays in a `State`, which a checkpoint can hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from cohort.core.components import Component

Need = Literal["label_counts", "reserved_loss", "soft_labels"]
State = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class View:
    """What a selector may know before the first round."""

    clients: int
    cohort: int
    sizes: np.ndarray
    rounds: int = 1
    label_counts: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class Selector(Component):
    """Chooses the cohort of each round. `needs` says what it must be told; cohort/training/needs.py says what each need costs."""

    needs: ClassVar[frozenset[Need]] = frozenset()

    def check(self, clients: int, cohort: int) -> None:
        """Raise ValueError when it cannot work with so many clients."""

    def begin(self, view: View, rng: np.random.Generator) -> State:
        """What it remembers before the first round."""
        return {}

    def probing(self) -> int:
        """How many local batches the clients of a pool are to train before it chooses; 0 if it needs no such probe."""
        return 0

    def pool_size(self, clients: int, cohort: int) -> int:
        """How many clients it probes in a round."""
        return 0

    def draw_pool(self, candidates: np.ndarray, view: View, rng: np.random.Generator) -> np.ndarray:
        """Whom to probe."""
        raise NotImplementedError

    def look(self, state: State, pool: np.ndarray, norms: np.ndarray) -> State:
        """What it remembers once the pool was probed: how far each client's model moved."""
        raise NotImplementedError

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        """The cohort: `view.cohort` distinct clients of the candidates; fewer, where it finds no more that help."""
        raise NotImplementedError

    def quotas(self, cohort: np.ndarray, view: View) -> np.ndarray | None:
        """How many samples of each class each client of the cohort is to train on, a row each; None for all that it has."""
        return None

    def keep(self, reports: Mapping[Need, np.ndarray], sizes: np.ndarray) -> np.ndarray:
        """Whose updates count, of the clients that answered: True for each that is kept, given what the needs report of them."""
        return np.ones(len(sizes), dtype=bool)

    def observe(
        self, state: State, cohort: np.ndarray, reports: Mapping[Need, np.ndarray], view: View
    ) -> State:
        """What it remembers after a round, given what the needs report of each client of the cohort: NaN where one did not answer."""
        return state
