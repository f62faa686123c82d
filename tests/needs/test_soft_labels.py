"""Soft labels: each local model's mean softmax output on its own client's samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.selection.entropy import Reselect
from tests.needs.by_hand import MODEL_BYTES, Spy, costs, played, task_by_hand


@dataclass(frozen=True, kw_only=True)
class SoftSpy(Spy):
    needs: ClassVar[frozenset[str]] = frozenset({"soft_labels"})


def softmax(*bias: float) -> list[float]:
    total = sum(map(math.exp, bias))
    return [math.exp(bia) / total for bia in bias]


def test_soft_labels_by_hand():
    """A step from zero at a learning rate of 0.3 leaves a bias of 0.3 (label shares - 1/3)."""
    played(task_by_hand(selector := SoftSpy()))
    expected = [
        softmax(0.05, -0.025, -0.025),
        softmax(-0.1, 0.2, -0.1),
        softmax(0, -0.1, 0.1),
        [math.nan] * 3,
    ]
    np.testing.assert_allclose(selector.reports[0]["soft_labels"], expected, rtol=1e-12)


def test_what_soft_labels_cost():
    """Each of four clients evaluates its own samples, nine in all, and sends three numbers."""
    state = played(task_by_hand(SoftSpy(), rounds=2))
    assert costs(state, "selection_samples") == [9, 9]
    assert costs(state, "bytes_up") == [4 * MODEL_BYTES + 4 * 3 * 4] * 2
    assert costs(state, "bytes_down") == [4 * MODEL_BYTES] * 2
    assert state.history.traffic["soft_labels"].tolist() == [2 * 4 * 3 * 4, 0, 0]


def test_reselect_filters_by_them():
    """Without client 0, whose labels lean to class 0, the mean soft label is less even. The client
    without samples never counts."""
    state = played(task_by_hand(Reselect()))
    soft = np.array(
        [softmax(0.05, -0.025, -0.025), softmax(-0.1, 0.2, -0.1), softmax(0, -0.1, 0.1)]
    )
    order = state.history.cohorts[0]
    rows = np.array([[*soft, [math.nan] * 3][client] for client in order])
    kept = Reselect().keep({"soft_labels": rows}, np.array([[4, 2, 3, 0][one] for one in order]))
    expected = kept.sum() - kept[order.tolist().index(3)]
    assert state.history.metrics["updates_used"] == [(1, expected)]
