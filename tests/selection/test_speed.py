"""FedCS and TiFL, which know how long clients take, against their papers' pseudo code."""

import itertools
import math

import numpy as np
import pytest
from numpy.random import default_rng

from cohort.selection.oort import Tifl
from cohort.selection.pools import FedCs
from cohort.selection.selector import State, View


def view_of(training: np.ndarray, transfer: np.ndarray, cohort: int, rounds: int = 1) -> View:
    reports = {"expected_duration": training + 2 * transfer, "transfer_time": transfer}
    sizes = np.ones(len(training))
    return View(clients=len(sizes), cohort=cohort, sizes=sizes, rounds=rounds, reports=reports)


def algorithm_3(pool: list[int], update: np.ndarray, upload: np.ndarray, round: float) -> list[int]:
    """Add the client with the largest inverse time, if the round is then in time (lines 3 to 10)."""

    def distribution(clients: list[int]) -> float:
        return max((float(upload[k]) for k in clients), default=0.0)

    pool, chosen, theta = list(pool), [], 0.0
    while pool:
        gains = {}
        for k in pool:
            longer = distribution([*chosen, k]) - distribution(chosen)
            gains[k] = 1 / (longer + upload[k] + max(0.0, update[k] - theta))
        x = max(gains, key=lambda k: gains[k])
        pool.remove(x)
        later = theta + upload[x] + max(0.0, update[x] - theta)
        if distribution([*chosen, x]) + later < round:
            theta = later
            chosen.append(x)
    return chosen


@pytest.mark.parametrize("seed", range(300))
def test_fedcs_is_the_papers_algorithm_up_to_the_size_of_a_cohort(seed: int):
    rng = default_rng(seed)
    clients, cohort, deadline = 12, int(rng.integers(1, 9)), float(rng.uniform(1, 15))
    training, transfer = rng.lognormal(size=clients), rng.lognormal(size=clients)
    pool = rng.permutation(clients)[: int(rng.integers(cohort, clients + 1))]
    view = view_of(training, transfer, cohort)
    chosen = FedCs(deadline=deadline).select({}, pool, view, rng).tolist()
    literal = algorithm_3(pool.tolist(), training, transfer, deadline)[:cohort]
    if literal:
        assert chosen == literal
    else:  # nobody is in time: the fastest alone
        assert chosen == [min(pool.tolist(), key=lambda k: training[k] + 2 * transfer[k])]


def takes(order: tuple[int, ...], training: np.ndarray, transfer: np.ndarray) -> float:
    """When the last of these clients has sent its update, by following the clock."""
    clock = start = max(transfer[k] for k in order)
    for k in order:
        clock = max(clock, start + training[k]) + transfer[k]
    return float(clock)


@pytest.mark.parametrize("seed", range(30))
def test_nobody_could_join_and_without_training_no_cohort_is_larger(seed: int):
    """By brute force over all cohorts of six clients, in all orders."""
    rng = default_rng(seed)
    transfer, deadline = rng.lognormal(size=6), float(rng.uniform(4, 9))
    for training in (rng.lognormal(size=6), np.zeros(6)):
        view = view_of(training, transfer, cohort=6)
        chosen = tuple(FedCs(deadline=deadline).select({}, np.arange(6), view, rng).tolist())
        orders = itertools.chain.from_iterable(
            itertools.permutations(range(6), n) for n in range(1, 7)
        )
        feasible = {order for order in orders if takes(order, training, transfer) < deadline}
        assert chosen in feasible or (len(chosen) == 1 and not feasible)
        assert not any((*chosen, k) in feasible for k in set(range(6)) - set(chosen))
    assert len(chosen) == max(map(len, feasible), default=1)


class Algorithm2:
    """TiFL's adaptive tier selection, with the probabilities by which its loop ends at each tier."""

    def __init__(self, tiers: list[list[int]], rounds: int, interval: int):
        self.tiers, self.interval = tiers, interval
        self.credits = [-(-rounds // len(tiers))] * len(tiers)
        self.odds = [1 / len(tiers)] * len(tiers)
        self.accuracy: dict[int, list[float]] = {}
        self.current = 0

    def chances(self, r: int, accuracies: np.ndarray, there: set[int]) -> list[float]:
        if r % self.interval == 0:
            before = self.accuracy.get(r - self.interval, [math.nan] * len(self.tiers))
            self.accuracy[r] = list(before)
            for number, tier in enumerate(self.tiers):
                reported = [float(accuracies[k]) for k in tier if k in there]
                if reported:
                    self.accuracy[r][number] = sum(reported) / len(reported)
            if r and self.accuracy[r][self.current] <= before[self.current]:
                self.change_probabilities(self.accuracy[r])
        open_odds = [
            odds if self.credits[number] > 0 and there & set(self.tiers[number]) else 0.0
            for number, odds in enumerate(self.odds)
        ]
        if not sum(open_odds):
            open_odds = [float(bool(there & set(tier))) for tier in self.tiers]
        return [odds / sum(open_odds) for odds in open_odds]

    def change_probabilities(self, accuracy: list[float]) -> None:
        ascending = sorted(range(len(self.tiers)), key=lambda k: np.nan_to_num(accuracy[k], nan=1))
        n = sum(credits > 0 for credits in self.credits)
        rank = 0
        for number in ascending:
            has_credits = self.credits[number] > 0
            self.odds[number] = (n - rank) / (n * (n + 1) / 2) if has_credits else 0.0
            rank += has_credits

    def drawn(self, number: int) -> None:
        self.current = number
        self.credits[number] -= 1


class Recording:
    """A generator that keeps the probabilities by which it draws."""

    def __init__(self, rng: np.random.Generator):
        self.rng, self.chances = rng, np.zeros(0)

    def choice(self, *args, p: np.ndarray | None = None, **more):
        self.chances = self.chances if p is None else p
        return self.rng.choice(*args, p=p, **more)


@pytest.mark.parametrize("seed", range(25))
def test_tifl_is_the_papers_algorithm(seed: int):
    """In 24 rounds of 25 runs, in which half of the clients are absent, or nobody is."""
    rng = default_rng(seed)
    clients, count, interval, rounds = 13, int(rng.integers(1, 5)), int(rng.integers(2, 5)), 24
    selector = Tifl(tiers=count, interval=interval)
    view = view_of(rng.lognormal(size=clients), np.zeros(clients), cohort=3, rounds=rounds)
    state: State = selector.begin(view, rng)
    ascending = np.argsort(view.reports["expected_duration"])
    tiers = [part.tolist() for part in np.array_split(ascending, count)]
    literal, draws = Algorithm2(tiers, rounds, interval), Recording(rng)
    for _ in range(rounds):
        there = np.flatnonzero(rng.random(clients) < (0.5 if seed % 2 else 1))
        if not len(there):
            continue
        accuracies = np.full(clients, np.nan)
        accuracies[there] = rng.integers(0, 9, len(there)) / 8
        reports = {"candidate_accuracy": accuracies} if selector.asks(state, view) else {}
        assert bool(reports) == (int(state["round"][0]) % interval == 0)
        full_view = View(**{**vars(view), "reports": {**view.reports, **reports}})
        cohort = selector.select(state, there, full_view, draws)
        expected = literal.chances(int(state["round"][0]), accuracies, set(there.tolist()))
        np.testing.assert_allclose(draws.chances, expected, atol=1e-12)
        (tier,) = (number for number, tier in enumerate(tiers) if cohort[0] in tier)
        present = set(tiers[tier]) & set(there.tolist())
        assert set(cohort) <= present and len(cohort) == min(3, len(present))
        state = selector.observe(state, cohort, {}, full_view)
        literal.drawn(tier)


def test_equally_fast_clients_are_tiered_at_random():
    view = view_of(np.ones(10), np.zeros(10), cohort=2)
    first, second = (Tifl().begin(view, default_rng(seed))["tier"] for seed in (0, 1))
    assert sorted(first) == sorted(second) == sorted([*range(5)] * 2)
    assert first.tolist() != second.tolist()


def test_credits_are_shared_among_the_tiers_and_rounded_up():
    view = view_of(np.arange(10.0), np.zeros(10), cohort=2, rounds=7)
    for share, credits in ((1.0, 4), (1.5, 6)):  # 7 / 2 and 10.5 / 2
        state = Tifl(tiers=2, credits=share).begin(view, default_rng(0))
        assert state["credits"].tolist() == [credits] * 2
