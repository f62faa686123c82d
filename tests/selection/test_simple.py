"""Selectors of a few lines: uniform, in turn, skewed, with a fixed probability, and by loss."""

from itertools import combinations

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats
from scipy.stats import chisquare, ks_2samp

from cohort.selection import simple
from cohort.selection.selector import View
from cohort.selection.simple import FixedProbability, HighestLoss, RoundRobin, Skewed
from tests.selection.views import alike


def cohorts(candidates: np.ndarray, cohort: int, draws: int) -> np.ndarray:
    args = {}, candidates, View(clients=20, cohort=cohort, sizes=np.arange(1, 21))
    return np.stack([simple.Random().select(*args, default_rng(seed)) for seed in range(draws)])


def test_every_subset_is_equally_likely():
    """Two of six candidates: 15 subsets, 3,000 draws. Sizes differ and must not matter."""
    candidates = np.array([0, 3, 4, 9, 11, 19])
    subsets = list(combinations(candidates.tolist(), 2))
    drawn = [tuple(sorted(cohort)) for cohort in cohorts(candidates, 2, 3000).tolist()]
    assert chisquare([drawn.count(subset) for subset in subsets]).pvalue > 1e-3
    assert len(drawn) == sum(drawn.count(subset) for subset in subsets)


VIEW = View(clients=7, cohort=3, sizes=np.ones(7))


def test_every_seven_rounds_each_client_has_three_turns():
    selector, rng = RoundRobin(), default_rng(0)
    state, turns = selector.begin(VIEW, rng), np.zeros(7, dtype=int)
    for round in range(1, 22):
        cohort = selector.select(state, np.arange(7), VIEW, rng)
        turns[cohort] += 1
        assert np.ptp(turns) <= 1
        assert round % 7 or set(turns) == {3 * round // 7}
        state = selector.observe(state, cohort, {}, VIEW)


def test_who_was_not_there_comes_next():
    selector, rng = RoundRobin(), default_rng(0)
    state = {"order": np.array([4, 0, 6, 2, 1, 5, 3])}
    cohort = selector.select(state, np.array([0, 1, 2, 3]), VIEW, rng)
    assert cohort.tolist() == [0, 2, 1]
    state = selector.observe(state, cohort, {}, VIEW)
    assert state["order"].tolist() == [4, 6, 5, 3, 0, 2, 1]


def test_the_order_is_drawn():
    orders = {tuple(RoundRobin().begin(VIEW, default_rng(seed))["order"]) for seed in range(9)}
    assert len(orders) == 9


def counts(selector: Skewed, clients: int, cohort: int, rounds: int, seed: int = 0) -> np.ndarray:
    """How often each client is chosen."""
    times_chosen, view = np.zeros(clients), alike(clients, cohort)
    state = selector.begin(view, default_rng(seed))
    for round in range(rounds):
        rng = default_rng([seed, round])
        times_chosen[selector.select(state, np.arange(clients), view, rng)] += 1
    return times_chosen


@pytest.mark.parametrize("gamma", [0.5, 1.0, 10.0])
def test_probabilities_are_dirichlet_shares(gamma: float):
    """The largest of five shares, and the first, are distributed as numpy's."""
    rng = default_rng(1)
    logs = np.array([Skewed(gamma=gamma).log_weights(5, rng) for _ in range(4000)])
    ours = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    theirs = default_rng(2).dirichlet(np.full(5, gamma), 4000)
    assert ks_2samp(ours[:, 0], theirs[:, 0]).pvalue > 1e-3
    assert ks_2samp(ours.max(axis=1), theirs.max(axis=1)).pvalue > 1e-3


def test_a_cohort_is_a_draw_without_replacement():
    """With weights 4, 2, 1, 1 the ordered pair (a, b) has the probability p_a p_b / (1 - p_a)."""
    weights, pair_counts = np.array([4, 2, 1, 1]) / 8, np.zeros((4, 4))
    selector, state = Skewed(gamma=1.0, redraw=False), {"log_weight": np.log(weights)}
    for seed in range(20_000):
        first, second = selector.select(state, np.arange(4), alike(4, 2), default_rng(seed))
        pair_counts[first, second] += 1
    expected = weights[:, None] * weights / (1 - weights[:, None])
    off = ~np.eye(4, dtype=bool)
    assert pair_counts[~off].sum() == 0
    assert chisquare(pair_counts[off], expected[off] * 20_000).pvalue > 1e-3


def test_drawn_anew_everybody_is_chosen_equally_often():
    times_chosen = counts(Skewed(gamma=0.01), 20, 4, 5000)
    assert times_chosen.sum() == 20_000
    assert chisquare(times_chosen).pvalue > 1e-3


def test_drawn_once_few_clients_are_chosen_again_and_again():
    skewed, even = (
        np.sort(counts(Skewed(gamma=gamma, redraw=False), 20, 4, 500))[::-1]
        for gamma in (0.01, 1000.0)
    )
    assert skewed[:4].tolist() == [500] * 4
    assert chisquare(even).pvalue > 1e-3


CLIENTS, ROUNDS = 20, 6000
OVERLAPPING = (3, 11)


def view_of(overlapping: tuple[int, ...], cohort: int) -> View:
    overlap = np.isin(np.arange(CLIENTS), overlapping).astype(float)
    sizes, reports = np.ones(CLIENTS), {"overlap": overlap}
    return View(clients=CLIENTS, cohort=cohort, sizes=sizes, reports=reports)


def count_rounds(probability: float, overlapping: tuple[int, ...], cohort: int = 4) -> np.ndarray:
    """Count in how many of 6,000 rounds each client takes part."""
    selector, view = FixedProbability(probability=probability), view_of(overlapping, cohort)
    rng, rounds_of_client = default_rng(1), np.zeros(CLIENTS, dtype=int)
    for _ in range(ROUNDS):
        chosen = selector.select({}, np.arange(CLIENTS), view, rng)
        assert len(set(chosen)) == len(chosen) == cohort
        rounds_of_client[chosen] += 1
    return rounds_of_client


def p_value(observed: np.ndarray, expected: np.ndarray) -> float:
    """P-value of a chi-square test that clients are chosen as often as expected, corrected for the
    fixed size of the cohort, which makes counts dependent."""
    chances = expected / ROUNDS
    squares = (observed - expected) ** 2 / (expected * (1 - chances))
    return float(stats.chi2.sf(squares.sum() * (1 - 1 / len(observed)), len(observed) - 1))


@pytest.mark.parametrize("probability", [0.0, 0.3, 0.8, 1.0])
def test_overlapping_clients_join_with_their_probability(probability: float):
    """Never or always at its extremes, which a binomial test takes exactly."""
    actual = count_rounds(probability, OVERLAPPING)
    for client in OVERLAPPING:
        assert stats.binomtest(actual[client], ROUNDS, probability).pvalue > 0.001
    regular = np.delete(actual, OVERLAPPING)
    assert p_value(regular, np.full(18, ROUNDS * (4 - 2 * probability) / 18)) > 0.001
    assert p_value(actual, np.full(CLIENTS, ROUNDS / 5)) < 1e-9  # the test would see a uniform draw


@pytest.mark.parametrize("probability", [0.0, 0.2, 1.0])
def test_without_overlapping_clients_it_is_uniform(probability: float):
    assert p_value(count_rounds(probability, ()), np.full(CLIENTS, ROUNDS / 5)) > 0.001


def test_of_too_many_as_many_join_as_there_are_places():
    overlapping = (0, 1, 2, 3, 4, 5)
    result = count_rounds(1.0, overlapping)
    assert result[6:].sum() == 0
    assert p_value(result[:6], np.full(6, ROUNDS * 4 / 6)) > 0.001


def test_with_too_few_regular_clients_the_cohort_is_smaller():
    view = view_of(tuple(range(17)), 4)
    chosen = FixedProbability(probability=0).select({}, np.arange(CLIENTS), view, default_rng(0))
    assert sorted(chosen) == [17, 18, 19]


def test_a_cohort_is_never_empty():
    """Nobody joins, and there is no regular client."""
    view = view_of(tuple(range(CLIENTS)), 4)
    arguments = {}, np.arange(CLIENTS), view, default_rng(0)
    assert len(FixedProbability(probability=0).select(*arguments)) == 1


SELECTOR = HighestLoss()


def select(losses: list[float], cohort: int, seed: int) -> list[int]:
    args = {"loss": np.array(losses)}, np.arange(len(losses)), alike(len(losses), cohort)
    return SELECTOR.select(*args, default_rng(seed)).tolist()


def test_never_measured_may_never_come():
    """Of seven clients the three that were measured stay, by their loss."""
    selector, rng = HighestLoss(unseen="never"), default_rng(0)
    state = selector.begin(VIEW, rng)
    reports = {"reserved_loss": np.array([1.0, 3.0, 2.0])}
    state = selector.observe(state, np.array([5, 0, 2]), reports, VIEW)
    assert selector.select(state, np.arange(7), VIEW, rng).tolist() == [0, 2, 5]


@pytest.mark.parametrize("tied", [np.inf, 2.5])
def test_ties_are_broken_evenly(tied: float):
    """Client 1 leads, six clients are tied for two places: in 3,000 draws each takes 1,000 of the 6,000 places."""
    losses = [tied, np.inf if tied < np.inf else tied, tied, tied, 0.1, tied, tied, tied, 0.2]
    equal = [client for client in range(9) if losses[client] == tied]
    lead = 0 if tied == np.inf else 1
    chosen = [select(losses, 2 + lead, seed) for seed in range(3000)]
    counts = np.bincount(np.concatenate(chosen), minlength=9)
    assert lead == 0 or counts[1] == 3000
    assert counts[equal].sum() == 6000
    assert chisquare(counts[equal]).pvalue > 1e-3


@pytest.mark.parametrize("selector", [SELECTOR, simple.HighestTrainingLoss()])
@pytest.mark.parametrize("seed", range(10))
def test_a_run_equals_a_dictionary_kept_by_hand(seed: int, selector: HighestLoss):
    """Twelve rounds of 3 of 10 clients, some of which do not answer: the cohort is what sorting the
    last-known losses gives."""
    rng, view, (need,) = default_rng(seed), alike(10, 3), selector.needs
    state, last = selector.begin(view, default_rng(0)), {}
    for round in range(12):
        chosen = selector.select(state, np.arange(10), view, default_rng([seed, round]))
        cohort = chosen.tolist()
        unmeasured = [client for client in range(10) if client not in last]
        if len(unmeasured) >= 3:
            assert set(cohort) <= set(unmeasured)
        else:
            ranked = sorted(last, key=lambda client: -last[client])
            assert set(cohort) == set(unmeasured) | set(ranked[: 3 - len(unmeasured)])
        losses = np.where(rng.random(3) < 0.2, np.nan, rng.random(3))
        answers = zip(cohort, losses, strict=True)
        last |= {client: loss for client, loss in answers if not np.isnan(loss)}
        state = selector.observe(state, np.array(cohort), {need: losses}, view)
