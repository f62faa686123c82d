"""The base of every selector.

A selector sees the federation only through what it declares in `needs`, so that what a strategy
costs beyond training is recorded. Its memory is plain arrays in a `State`, which a checkpoint can
hold. What only some selectors do (probing clients, granting quotas, filtering updates, measuring
something of their own) is an ability of `cohort.selection.abilities`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from cohort.core.components import Component
from cohort.core.metric import Metric
from cohort.privacy.label_report import LabelReport

State = dict[str, np.ndarray]
Reports = Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class View:
    """What a selector may know when it chooses.

    `label_counts` are as the clients reported them, None unless the selector needs them. `reports`
    hold what was gathered before choosing: one row for each client, NaN for one that was not asked.
    """

    clients: int
    cohort: int
    sizes: np.ndarray
    rounds: int = 1
    label_counts: np.ndarray | None = None
    reports: Reports = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Selector(Component):
    """Chooses the cohort of each round. `needs` names what it must be told, entries of
    `cohort.needs`."""

    needs: ClassVar[frozenset[str]] = frozenset()
    metrics: ClassVar[Mapping[str, Metric]] = {}
    """What it records of its own, by the recorded name."""

    @property
    def label_report(self) -> LabelReport:
        """How clients report their label counts, where the selector needs them."""
        return LabelReport()

    def check(self, clients: int, cohort: int) -> None:
        """Raise ValueError if it cannot choose `cohort` of so many clients."""

    def begin(self, view: View, rng: np.random.Generator) -> State:
        """The memory before the first round."""
        return {}

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        """The cohort: `view.cohort` distinct candidates, or fewer if no more would help."""
        raise NotImplementedError

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        """The memory after a round. `reports` holds what was gathered after training: one row for
        each client of the cohort, NaN for one that did not answer."""
        return state
