"""Derived metrics, compared with numbers worked out by hand or by scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy

from cohort.records.history import History
from cohort.results.derived import (
    class_metrics,
    client_metrics,
    gini,
    label_baselines,
    longest_gap,
    round_metrics,
    run_metrics,
)


def test_gini_by_hand_and_by_its_definition():
    """One of four has all: 3/4. By definition, it is half the mean difference of all pairs over
    the mean.
    """
    assert gini(np.array([5, 5, 5])) == 0
    assert gini(np.array([0, 0, 8, 0])) == pytest.approx(0.75)
    counts = np.random.default_rng(1).integers(0, 30, 50)
    differences = np.abs(counts[:, None] - counts[None, :]).mean()
    assert gini(counts) == pytest.approx(differences / (2 * counts.mean()), rel=1e-12)


@pytest.mark.parametrize(
    ("cohorts", "expected"),
    [
        ([[0, 1], [0, 1], [0, 1]], 3),  # client 2 never
        ([[0], [1], [2]], 2),  # client 0 waits for the last two rounds
        ([[0, 1, 2], [0], [0], [0], [1, 2]], 3),
        ([[0, 1, 2], [0, 1, 2]], 0),
    ],
)
def test_longest_gap_by_hand(cohorts: list[list[int]], expected: int):
    assert longest_gap([np.array(cohort) for cohort in cohorts], 3) == expected


def test_longest_gap_by_brute_force():
    rng = np.random.default_rng(2)
    cohorts = [rng.choice(12, 3, replace=False) for _ in range(60)]
    longest = 0
    for client in range(12):
        word = "".join("x" if client in cohort else "." for cohort in cohorts)
        longest = max(longest, *(len(part) for part in word.split("x")))
    assert longest_gap(cohorts, 12) == longest


def test_metrics_of_a_run():
    """Counts 3, 2, 1, 0: the loss is lowest in round 2; NaN is no loss."""
    history = History(cohorts=[np.array([0, 1]), np.array([0, 2]), np.array([0, 1])])
    for round, loss in ((1, 2.0), (2, 1.5), (3, float("nan"))):
        history.add_metrics(round, test_loss=loss)
    facts = run_metrics(history, 4)
    assert facts["loss_minimum_round"] == 2
    assert (
        facts["never_selected"],
        facts["least_selected"],
        facts["most_selected"],
        facts["longest_gap"],
    ) == (1, 0, 3, 3)
    assert facts["selection_entropy"] == pytest.approx(entropy([3, 2, 1, 0], base=4), rel=1e-12)
    assert facts["selected_sd"] == pytest.approx(np.sqrt(1.25), rel=1e-12)


def test_best_round_and_what_a_client_trains_until_then():
    """The highest accuracy, 0.75, is first that of round 2. Until then two clients train for 2 s
    each in round 1, and one for 3 s in round 2."""
    history = History(cohorts=[np.array([0, 1]), np.array([2]), np.array([0, 2])])
    for round, accuracy, seconds in ((1, 0.5, 4.0), (2, 0.75, 3.0), (3, 0.75, 8.0)):
        history.add_metrics(round, test_accuracy=accuracy)
        history.add_cost(round, seconds_training=seconds)
    facts = run_metrics(history, 3)
    assert (facts["best_round"], facts["client_seconds_to_best"]) == (2, 5)
    assert round_metrics(history)["client_seconds_training"] == [(1, 2), (2, 3), (3, 4)]


def test_without_a_finite_accuracy_no_round_is_best():
    history = History(cohorts=[np.array([0])])
    history.add_metrics(1, test_accuracy=float("nan"))
    assert "best_round" not in run_metrics(history, 1)


def test_tasks_saved():
    """Ten labels in six tasks instead of ten."""
    history = History(cohorts=[np.array([0])])
    history.add_metrics(1, tasks=6)
    history.add_cost(1, client_steps=10)
    assert round_metrics(history) == {"tasks_saved": [(1, pytest.approx(0.4))]}


def test_a_run_of_one_client_has_no_selection_metrics():
    history = History(cohorts=[np.array([0])])
    history.add_metrics(1, test_loss=1.0)
    assert run_metrics(history, 1) == {"loss_minimum_round": 1}


def test_metrics_of_clients():
    """Client 0 was probed twice, client 1 once, client 2 never."""
    history = History(
        pools=[np.array([0, 1]), np.array([0, 3])],
        norms=[np.array([1.0, 5.0]), np.array([2.0, 4.0])],
    )
    counts = np.array([[4, 0, 4], [0, 9, 0], [0, 0, 0], [1, 2, 3]])
    facts = client_metrics(history, counts)
    assert facts["probe_norm"][[0, 1, 3]].tolist() == [1.5, 5.0, 4.0] and np.isnan(
        facts["probe_norm"][2]
    )
    assert facts["classes_held"].tolist() == [2, 1, 0, 3]
    assert facts["label_entropy"] == pytest.approx([1, 0, 0, entropy([1, 2, 3], base=2)], abs=1e-12)
    assert "probe_norm" not in client_metrics(History(), counts)


def test_metrics_of_classes_and_baselines_without_a_model():
    """Clients hold most of class 1, which is a fifth of the test samples."""
    classes = {"tested": np.array([7, 2, 1, 0]), "right": np.array([7, 1, 0, 0])}
    assert class_metrics(classes)["class_accuracy"][:3].tolist() == [1.0, 0.5, 0.0] and np.isnan(
        class_metrics(classes)["class_accuracy"][3]
    )
    facts = label_baselines(np.array([[3, 5, 0, 0], [0, 4, 1, 1]]), classes)
    assert facts["majority_accuracy"] == 0.2
    assert facts["target_entropy"] == pytest.approx(entropy([7, 2, 1]), rel=1e-12)
    assert class_metrics({}) == {} and label_baselines(np.ones((1, 2)), {}) == {}


def test_how_much_the_accuracy_swings():
    """Changes of 0.2, -0.1 and 0.2 from round to round; 4 to 6 are no neighbors. Their mean is 0.1,
    the deviations 0.1, -0.2 and 0.1, and the variance 0.06 / 2."""
    history = History(cohorts=[np.array([0])])
    for round, accuracy in {1: 0.1, 2: 0.3, 3: 0.2, 4: 0.4, 6: 0.9}.items():
        history.add_metrics(round, test_accuracy=accuracy)
    assert run_metrics(history, 1)["test_accuracy_swing"] == pytest.approx(0.03**0.5, rel=1e-12)
    few = History()
    few.add_metrics(1, test_accuracy=0.1)
    few.add_metrics(2, test_accuracy=0.2)
    assert "test_accuracy_swing" not in run_metrics(few, 1)


def test_the_share_of_time_for_selecting():
    history = History()
    history.add_cost(1, seconds=4.0, seconds_selecting=1.0)
    history.add_cost(2, seconds=2.0, seconds_selecting=1.5)
    assert round_metrics(history) == {"selecting_share": [(1, 0.25), (2, 0.75)]}
    assert round_metrics(History()) == {}
