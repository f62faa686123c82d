"""Soft labels: each local model's mean softmax output on its own client's samples."""

import math

import numpy as np

from tests.needs.by_hand import MODEL_BYTES, costs, played, spying, task_by_hand

SoftSpy = spying("soft_labels")


def softmax(*bias: float) -> list[float]:
    total = sum(map(math.exp, bias))
    return [math.exp(bia) / total for bia in bias]


def test_soft_labels_by_hand():
    """A step from zero at a learning rate of 0.3 leaves a bias of 0.3 (label shares - 1/3)."""
    played(task_by_hand(selector := SoftSpy()))
    own = (0.05, -0.025, -0.025), (-0.1, 0.2, -0.1), (0, -0.1, 0.1)
    expected = [*(softmax(*bias) for bias in own), [math.nan] * 3]
    np.testing.assert_allclose(selector.reports[0]["soft_labels"], expected, rtol=1e-12)


def test_what_soft_labels_cost():
    """Each of four clients evaluates its own samples, nine in all, and sends three numbers."""
    state = played(task_by_hand(SoftSpy(), rounds=2))
    assert costs(state, "selection_samples") == [9, 9]
    assert costs(state, "bytes_up") == [4 * MODEL_BYTES + 4 * 3 * 4] * 2
    assert costs(state, "bytes_down") == [4 * MODEL_BYTES] * 2
    assert state.history.traffic["soft_labels"].tolist() == [2 * 4 * 3 * 4, 0, 0]
