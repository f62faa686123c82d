"""Predictions on reserved samples, local accuracies and overlaps, and what they cost."""

import dataclasses
import math

import numpy as np
import pytest

from cohort.selection.peco import Peco
from cohort.selection.selector import Selector
from cohort.training.task import Task
from tests.needs.by_hand import MODEL_BYTES, RESERVED, costs, played, spying, task_by_hand
from tests.needs.test_soft_labels import softmax

TRAINED = [
    softmax(0.05, -0.025, -0.025),
    softmax(-0.1, 0.2, -0.1),
    softmax(0, -0.1, 0.1),
    [1 / 3] * 3,
]
"""Of each client after one step from zero; that of the client without samples is the global one."""
PredictionSpy = spying("reserved_predictions", "reserved_correct")
AccuracySpy = spying("local_accuracy")
OverlapSpy = spying("overlap", "label_counts", "candidate_loss")


def overlapping(selector: Selector, chosen: list[int], **settings: object) -> Task:
    """A task by hand, some of whose clients overlap."""
    task = task_by_hand(selector, **settings)
    return dataclasses.replace(
        task, shards=dataclasses.replace(task.shards, chosen=np.array(chosen, dtype=int))
    )


def test_predictions_by_hand():
    played(task_by_hand(selector := PredictionSpy()))
    (reports,) = selector.reports
    assert reports["reserved_predictions"].dtype == np.float64
    assert reports["reserved_predictions"].shape == (4, len(RESERVED), 3)
    for report, expected in zip(reports["reserved_predictions"], TRAINED, strict=True):
        np.testing.assert_allclose(report, [expected] * len(RESERVED), rtol=1e-12)
    named = [0, 1, 2, 0]
    expected = [[float(label == name) for label in RESERVED] for name in named]
    assert reports["reserved_correct"].tolist() == expected


def test_two_needs_share_one_evaluation():
    """Four local models on five samples, by the server: nothing is sent."""
    state = played(task_by_hand(PredictionSpy(), rounds=2))
    assert costs(state, "selection_samples") == [20, 20]
    assert costs(state, "bytes_up") == costs(state, "bytes_down") == [4 * MODEL_BYTES] * 2


def test_who_does_not_answer_predicts_nothing():
    played(task_by_hand(selector := PredictionSpy(), rounds=4, participation="dropout-0.5"))
    for reports in selector.reports:
        missing = np.isnan(reports["reserved_predictions"]).all(axis=(1, 2))
        assert missing.sum() == 2
        np.testing.assert_array_equal(np.isnan(reports["reserved_correct"]).all(axis=1), missing)


def test_local_accuracy_by_hand():
    """Clients name the class that they hold most of: right in 2 of 4, 2 of 2 and 2 of 3 cases."""
    state = played(task_by_hand(selector := AccuracySpy(), rounds=1))
    accuracies = selector.reports[0]["local_accuracy"]
    np.testing.assert_allclose(accuracies, [2 / 4, 1, 2 / 3, math.nan])
    assert costs(state, "selection_samples") == [9]
    assert costs(state, "bytes_up") == [4 * MODEL_BYTES + 4 * 4]
    assert state.history.traffic["local_accuracy"].tolist() == [16, 0, 0]


def test_who_overlaps_is_known_from_the_start_and_nothing_is_sent():
    selector = OverlapSpy()
    state = played(overlapping(selector, [2], rounds=2))
    assert len(selector.views) == 5
    for view in selector.views:
        assert view.reports["overlap"].tolist() == [0, 0, 1, 0]
        assert view.label_counts is not None
    assert set(selector.views[1].reports) == {"overlap", "candidate_loss"}
    assert set(state.history.traffic) == {"model", "label_counts", "candidate_loss"}


def test_peco_records_whom_it_prefers():
    """Equal probabilities in the first round of the clients with samples, of which two in three
    overlap. Later client 1, whose predictions are wrong most often, is less likely."""
    state = played(overlapping(Peco(), [1, 2], rounds=3, cohort=4))
    assert state.history.metrics["overlapping_probability"][0] == (1, 2 / 3)
    assert state.history.metrics["overlapping_preference"][0] == (1, 2.0)
    for (_, mass), (_, preference) in zip(
        state.history.metrics["overlapping_probability"],
        state.history.metrics["overlapping_preference"],
        strict=True,
    ):
        assert preference == pytest.approx(mass / (1 - mass), rel=1e-12)
    assert state.history.metrics["overlapping_preference"][2][1] < 2
