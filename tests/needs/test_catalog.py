"""A selector sees what it declares and nothing more, and may record metrics of its own."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from cohort.core import UserError
from cohort.core.metric import Metric
from cohort.needs import NEEDS, needs_of
from cohort.results import names
from cohort.selection import SELECTORS, Selector
from cohort.selection.selector import MetricRecording, Rng, Screening, State, View
from cohort.selection.simple import Random
from tests.needs.by_hand import Spy, played, spying, task_by_hand
from tests.training.small_task import small_task

POOL_LOSS = {"pool_loss": Metric("Mean loss of the pool", better="low")}


@pytest.mark.parametrize("cls", [Spy, spying("reserved_loss"), spying("label_counts")])
def test_views_hold_sizes_and_label_counts_if_they_are_needed(cls: type[Spy]):
    task = small_task(selector=(selector := cls()), clients=4, cohort=2, rounds=2)
    played(task)
    assert len(selector.views) == 5
    for view in selector.views:
        assert (view.clients, view.cohort, view.rounds) == (4, 2, 2)
        assert dict(view.reports) == {}
        np.testing.assert_array_equal(view.sizes, [len(indices) for indices in task.shards.indices])
        assert (view.label_counts is None) == ("label_counts" not in cls.needs)
        if view.label_counts is not None:
            np.testing.assert_array_equal(view.label_counts, task.shards.label_counts)


@dataclass(frozen=True, kw_only=True)
class PowerOfChoice(Selector, Screening, MetricRecording):
    """Of a random pool, the clients on whose samples the global model does worst."""

    needs: ClassVar[frozenset[str]] = frozenset({"candidate_loss"})
    metrics = POOL_LOSS

    def draw_pool(self, candidates: np.ndarray, view: View, rng: Rng) -> np.ndarray:
        return rng.choice(candidates[:3], 2, replace=False)

    def select(self, state: State, candidates: np.ndarray, view: View, rng: Rng) -> np.ndarray:
        losses = view.reports["candidate_loss"][candidates]
        return candidates[np.argsort(-losses, kind="stable")[: view.cohort]]

    def measure(
        self, state: State, candidates: np.ndarray, cohort: np.ndarray, view: View
    ) -> dict[str, float]:
        assert set(cohort) <= set(candidates) and len(cohort) == view.cohort
        return {"pool_loss": float(view.reports["candidate_loss"][candidates].mean())}


def test_a_selectors_metric_is_recorded_in_every_round():
    state = played(task_by_hand(PowerOfChoice(), cohort=1, rounds=5))
    rounds, values = zip(*state.history.metrics["pool_loss"], strict=True)
    assert rounds == (1, 2, 3, 4, 5)
    assert values[0] == pytest.approx(math.log(3), rel=1e-12)
    assert len(set(values)) == 5


def test_the_name_of_a_need_is_that_of_a_metric(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(NEEDS.by_name, "top-loss", NEEDS["candidate_loss"])
    with pytest.raises(UserError, match="needs 'top-loss': the name of a need must be of a-z"):
        needs_of(spying("top-loss")())


def declared_with(monkeypatch: pytest.MonkeyPatch, *metrics: Any) -> dict:
    """The declared metrics with further selectors, which declare these."""
    for number, own in enumerate(metrics):
        selector = type(f"Selector{number}", (Random,), {"metrics": own, "measure": None})
        monkeypatch.setitem(SELECTORS.by_name, f"selector{number}", selector)
    return names._declared()


def test_metrics_of_components_are_collected_and_each_is_declared_once(
    monkeypatch: pytest.MonkeyPatch,
):
    assert "pool_loss" not in names.METRICS
    assert declared_with(monkeypatch, POOL_LOSS)["pool_loss"] is POOL_LOSS["pool_loss"]
    assert {"nova_factor", "clipped_fraction", "test_accuracy", "local_loss"} <= set(names.METRICS)
    other = {"pool_loss": Metric("Something else")}
    with pytest.raises(UserError, match=r"Selector1: 'pool_loss' is another metric already"):
        declared_with(monkeypatch, POOL_LOSS, other)
    for name in ("train_loss", "bytes_up", "test_accuracy"):  # of every run, or another component
        with pytest.raises(UserError, match=f"'{name}' is another metric already"):
            declared_with(monkeypatch, {name: Metric("Mine")})
    for wrong in ({"Doubt!": Metric("Doubt")}, {"doubt": "Doubt"}, ["doubt"]):
        with pytest.raises(UserError, match=r"^metrics of .*\.Selector0: .*must be"):
            declared_with(monkeypatch, wrong)
