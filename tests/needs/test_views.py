"""A selector is told what it declares, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from cohort.selection import SELECTORS
from cohort.selection.selector import Need, Selector, State, View
from cohort.training.procedures.federated import Federated
from tests.training.small_task import small_task


@dataclass(frozen=True, kw_only=True)
class Spy(Selector):
    """Chooses the first clients and writes down what it was shown."""

    views: list[View] = field(default_factory=list)
    reports: list[Mapping[Need, np.ndarray]] = field(default_factory=list)

    def begin(self, view: View, rng: np.random.Generator) -> State:
        self.views.append(view)
        return {}

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        self.views.append(view)
        return candidates[: view.cohort]

    def observe(
        self, state: State, cohort: np.ndarray, reports: Mapping[Need, np.ndarray], view: View
    ) -> State:
        self.views.append(view)
        self.reports.append(reports)
        return state


@dataclass(frozen=True, kw_only=True)
class CountsSpy(Spy):
    needs: ClassVar[frozenset[Need]] = frozenset({"label_counts"})


@dataclass(frozen=True, kw_only=True)
class LossSpy(Spy):
    needs: ClassVar[frozenset[Need]] = frozenset({"reserved_loss"})


def watched(selector: Spy) -> Spy:
    task = small_task(selector=selector, clients=4, cohort=2, rounds=2)
    for _ in Federated().rounds(task, Federated().begin(task)):
        pass
    assert len(selector.views) == 5
    for view in selector.views:
        assert (view.clients, view.cohort) == (4, 2)
        np.testing.assert_array_equal(view.sizes, [len(indices) for indices in task.shards.indices])
    for view in selector.views:
        assert view.label_counts is None or view.label_counts is task.shards.label_counts
    return selector


def test_label_counts_are_shown_to_who_declares_them():
    assert all(view.label_counts is not None for view in watched(CountsSpy()).views)


@pytest.mark.parametrize("cls", [Spy, LossSpy])
def test_label_counts_are_hidden_from_everybody_else(cls: type[Spy]):
    assert all(view.label_counts is None for view in watched(cls()).views)


def test_losses_are_reported_to_who_declares_them():
    reports = watched(LossSpy()).reports
    assert [set(report) for report in reports] == [{"reserved_loss"}] * 2
    assert all(report["reserved_loss"].shape == (2,) for report in reports)
    assert [set(report) for report in watched(CountsSpy()).reports] == [set()] * 2


def test_every_selector_is_found():
    assert list(SELECTORS) == [
        "diversity",
        "entropy",
        "kl",
        "loss",
        "probe",
        "random",
        "reselect",
        "skewed",
    ]
