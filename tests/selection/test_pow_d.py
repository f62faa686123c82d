"""Power-of-choice against a literal version, and what it is at its two ends."""

import itertools

import numpy as np
import pytest

from cohort.selection.pools import CpowD, PowD, RpowD
from cohort.selection.selector import View

SIZES = np.array([10, 20, 30, 40, 0])


def view(cohort: int, losses: list[float] | None = None, sizes: np.ndarray = SIZES) -> View:
    names = ("candidate_loss", "candidate_batch_loss")
    reports = dict.fromkeys(names, np.array(losses or []))
    return View(clients=len(sizes), cohort=cohort, sizes=sizes, reports=reports)


def probability(drawn: tuple[int, ...], sizes: np.ndarray) -> float:
    """Probability of drawing these clients in this order, each in proportion to its size among those left."""
    remaining, product = float(sizes.sum()), 1.0
    for client in drawn:
        product *= sizes[client] / remaining
        remaining -= sizes[client]
    return product


def test_the_pool_is_drawn_in_proportion_to_samples():
    """Frequencies of pools against the sum over all orders of the draws; nobody has no samples."""
    draws, counts = 20_000, dict.fromkeys(itertools.combinations(range(4), 2), 0)
    for seed in range(draws):
        pool = PowD(pool=2).draw_pool(np.arange(5), view(1), np.random.default_rng(seed))
        counts[tuple(sorted(pool.tolist()))] += 1  # KeyError for client 4
    for pool, count in counts.items():
        expected = sum(probability(order, SIZES) for order in itertools.permutations(pool))
        assert abs(count / draws - expected) < 4 * np.sqrt(expected / draws)


@pytest.mark.parametrize("kind", [PowD, CpowD])
@pytest.mark.parametrize("seed", range(20))
def test_the_highest_losses_of_the_pool_are_chosen(kind: type[PowD], seed: int):
    losses = np.random.default_rng(seed).permutation(5).astype(float)
    pool = np.random.default_rng(seed).choice(5, 4, replace=False)
    cohort = kind().select({}, pool, view(2, losses.tolist()), np.random.default_rng(seed))
    assert cohort.tolist() == sorted(pool, key=lambda client: -losses[client])[:2]


def test_all_clients_in_the_pool_is_the_highest_loss():
    selector, losses = PowD(pool=5), [3.0, 1.0, np.nan, 9.0, 7.0]
    pool = selector.draw_pool(np.arange(5), view(1), np.random.default_rng(0))
    cohort = selector.select({}, pool, view(3, losses), np.random.default_rng(0))
    assert cohort.tolist() == [3, 0, 1]  # nobody has samples of client 4


def test_reported_losses_are_those_of_the_last_round_and_infinite_before():
    """Ten rounds against a literal version that shares the generator."""
    selector, sizes, rng = RpowD(), np.array([5, 1, 4, 2, 8, 3]), np.random.default_rng(1)
    state, last_losses = selector.begin(view(2, sizes=sizes), rng), [np.inf] * 6
    for round in range(10):
        ours, theirs = np.random.default_rng(round), np.random.default_rng(round)
        cohort = selector.select(state, np.arange(6), view(2, sizes=sizes), ours)
        noise = np.log(sizes) + theirs.gumbel(size=6)
        pool = sorted(range(6), key=lambda client: -noise[client])[:4]
        shuffled = [pool[index] for index in theirs.permutation(4)]
        assert cohort.tolist() == sorted(shuffled, key=lambda client: -last_losses[client])[:2]
        losses = rng.random(2)
        losses[rng.random(2) < 0.2] = np.nan  # did not answer
        for client, loss in zip(cohort, losses, strict=True):
            last_losses[client] = last_losses[client] if np.isnan(loss) else loss
        state = selector.observe(state, cohort, {"training_loss": losses}, view(2, sizes=sizes))
