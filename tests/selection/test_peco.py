"""PECO against its algorithm box, line by line, and against numbers worked out by hand."""

from typing import Literal

import numpy as np
import pytest

from cohort.selection.peco import Peco, to_probabilities
from cohort.selection.selector import State, View
from tests.selection.literal import Algorithm1
from tests.training.small_task import run, small_task

CLIENTS, COHORT, SAMPLES, CLASSES = 9, 3, 12, 4
VIEW = View(clients=CLIENTS, cohort=COHORT, sizes=np.full(CLIENTS, 5))


def outputs(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Random softmax outputs in single precision, as selectors remember them."""
    return rng.dirichlet(np.full(CLASSES, 0.5), shape).astype(np.float32).astype(np.float64)


def report(predictions: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    correct = (predictions.argmax(axis=2) == labels).astype(np.float64)
    return {"reserved_predictions": predictions, "reserved_correct": correct}


@pytest.mark.parametrize(
    ("tau", "gamma", "window"), [(5, 0.5, 10), (1, 0.9, 1), (20, 0.1, 4), (0, 0.5, 3)]
)
@pytest.mark.parametrize("answering", [1.0, 0.6])
def test_it_is_algorithm_1(tau: float, gamma: float, window: int, answering: float):
    """Equal probabilities and equal draws in 25 rounds, also where clients do not answer."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, CLASSES, SAMPLES)
    selector = Peco(tau=tau, gamma=gamma, window=window)
    literal = Algorithm1(CLIENTS, COHORT, tau, window, gamma)
    state, everyone = selector.begin(VIEW, rng), np.arange(CLIENTS)
    for round in range(25):
        result = selector.probabilities(state, everyone, VIEW)
        np.testing.assert_allclose(result, literal.smoothed(), rtol=0, atol=1e-12)
        cohort = selector.select(state, everyone, VIEW, np.random.default_rng([7, round]))
        assert cohort.tolist() == literal.select(np.random.default_rng([7, round]))
        predictions = outputs(rng, COHORT, SAMPLES)
        there = rng.random(COHORT) < answering
        predictions[~there] = np.nan
        reports = report(predictions, labels)
        reports["reserved_correct"][~there] = np.nan
        state = selector.observe(state, cohort, reports, VIEW)
        answers = {int(cohort[row]): predictions[row].tolist() for row in np.flatnonzero(there)}
        literal.round(answers, labels.tolist())
    assert len(state["recent"]) == min(25, window)


def test_probabilities_by_hand():
    """Scores of 1, 2 and 3, squared, are 1, 4 and 9 of 14; who was never evaluated counts 2."""
    all_evaluated = Peco(tau=2).round_probabilities(np.array([1.0, 2, 3]))
    assert all_evaluated == pytest.approx([1 / 14, 4 / 14, 9 / 14])
    with_unknown = Peco(tau=2).round_probabilities(np.array([1.0, np.nan, 3]))
    assert with_unknown == pytest.approx([1 / 14, 4 / 14, 9 / 14])
    highest = Peco(tau=2, unseen="highest").round_probabilities(np.array([1.0, np.nan, 3]))
    assert highest == pytest.approx([1 / 19, 9 / 19, 9 / 19])
    never = Peco(tau=2, unseen="never").round_probabilities(np.array([1.0, np.nan, 3]))
    assert never == pytest.approx([1 / 10, 0, 9 / 10])
    for scores in ([np.nan, 3.0, np.nan, np.nan], [np.nan] * 4):
        assert Peco().round_probabilities(np.array(scores)).tolist() == [0.25] * 4


@pytest.mark.parametrize(("unseen", "drawn"), [("never", 3), ("first", 9)])
def test_who_is_drawn_in_three_rounds_of_three(unseen: Literal["never", "first"], drawn: int):
    """The first cohort again and again, or each of the nine clients once."""
    rng = np.random.default_rng(5)
    labels, selector, cohorts = rng.integers(0, CLASSES, SAMPLES), Peco(unseen=unseen), []
    state = selector.begin(VIEW, rng)
    for _ in range(3):
        cohorts.append(selector.select(state, np.arange(CLIENTS), VIEW, rng))
        reports = report(outputs(rng, COHORT, SAMPLES), labels)
        state = selector.observe(state, cohorts[-1], reports, VIEW)
    assert len(set(np.concatenate(cohorts).tolist())) == drawn


@pytest.mark.parametrize(
    ("unseen", "recent", "first"), [("never", [1, 0, 0], [0]), ("first", [1, 1e-9, 1e-9], [2, 0])]
)
def test_the_rest_of_a_cohort_is_drawn_by_scores_and_has_samples(
    unseen: Literal["never", "first"], recent: list[float], first: list[int]
):
    """Client 2 was never evaluated, client 3 has no samples."""
    view, rng = View(clients=4, cohort=3, sizes=np.array([5, 5, 5, 0])), np.random.default_rng(0)
    state = {"recent": np.array([[*recent, 1e-9]]), "evaluated": np.arange(4) < 2}
    cohort = Peco(unseen=unseen).select(state, np.arange(4), view, rng).tolist()
    assert sorted(cohort) == [0, 1, 2] and cohort[: len(first)] == first


def test_extreme_exponents_stay_probabilities():
    result = Peco(tau=5000).round_probabilities(np.array([1.0, 9500, 5000]))
    assert result.tolist() == [0, 1, 0]
    assert to_probabilities(np.zeros(3)).tolist() == [1 / 3] * 3
    state = {"recent": np.array([[0.0, 1, 0]])}
    view = View(clients=3, cohort=3, sizes=np.ones(3))
    cohort = Peco().select(state, np.arange(3), view, np.random.default_rng(0))
    assert cohort[0] == 1 and sorted(cohort) == [0, 1, 2]


def test_without_a_client_that_answered_all_are_equally_likely():
    """The first cohort is silent, or its models are no longer finite."""
    rng, labels = np.random.default_rng(0), np.zeros(SAMPLES, dtype=int)
    silent = report(np.full((3, SAMPLES, CLASSES), np.nan), labels)
    state = Peco().observe(Peco().begin(VIEW, rng), np.array([4, 1, 7]), silent, VIEW)
    assert not state["evaluated"].any()
    np.testing.assert_array_equal(state["recent"], np.full((1, VIEW.clients), 1 / VIEW.clients))


def test_a_first_cohort_that_diverges_is_a_diverged_run():
    settings = {"lr": 1e300, "weight_decay": 0.9, "J": "J5"}
    state = run(small_task(selector=Peco(), rounds=3, cohort=2, **settings))
    assert (state.round, state.diverged, len(state.history.cohorts)) == (1, True, 1)


def big_state(clients: int, samples: int, classes: int) -> State:
    """The state when every client was evaluated and the window is full."""
    view, rng = (
        View(clients=clients, cohort=clients, sizes=np.ones(clients)),
        np.random.default_rng(1),
    )
    selector, state = Peco(), Peco().begin(view, rng)
    predictions = rng.dirichlet(np.ones(classes), (clients, samples))
    reports = report(predictions, rng.integers(0, classes, samples))
    for _ in range(selector.window):
        state = selector.observe(state, np.arange(clients), reports, view)
    return state


def test_memory_is_an_upper_bound():
    state = big_state(20, 500, 10)
    assert sum(array.nbytes for array in state.values()) < Peco().memory(500, 10, 20)
