"""FedEntOpt's greedy choice against arithmetic with 50 digits, and its buffer against a queue."""

import time
from collections import deque
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from cohort.selection.entropy import Entropy, entropy_bits
from cohort.selection.selector import State
from tests.selection.views import labeled


def select(counts: np.ndarray, cohort: int, seed: int, resting: tuple[int, ...] = ()) -> list[int]:
    state: State = {"buffer": np.array(resting, dtype=np.int64)}
    args = state, np.arange(len(counts)), labeled(counts, cohort)
    return Entropy().select(*args, default_rng(seed)).tolist()


def exact_entropy(counts: list[int]) -> Decimal:
    """Shannon entropy in bits with 50 digits."""
    total = sum(counts)
    shares = [Decimal(count) / Decimal(total) for count in counts if count]
    return -sum((share * share.ln() for share in shares), Decimal(0)) / Decimal(2).ln()


def exact_greedy(label_counts: np.ndarray, first: int, cohort: int) -> tuple[list[int], bool]:
    """The greedy cohort after its first client, ties to the lowest index; whether there was a tie."""
    chosen, tied = [first], False
    with localcontext() as context:
        context.prec = 50
        while len(chosen) < cohort:
            pooled, results = label_counts[chosen].sum(axis=0), {}
            for client in range(len(label_counts)):
                if client not in chosen:
                    results[client] = exact_entropy((pooled + label_counts[client]).tolist())
            best = max(results.values()) - Decimal("1e-40")
            equal = [client for client, entropy in results.items() if entropy > best]
            tied = tied or len(equal) > 1
            chosen.append(min(equal))
    return chosen, tied


def pools() -> list[np.ndarray]:
    """Label counts of 3 to 8 clients and 2 to 4 classes, small (ties, empty clients) and large."""
    results = []
    for seed in range(400):
        rng = default_rng(seed)
        shape = rng.integers(3, 9), rng.integers(2, 5)
        counts = rng.integers(0, rng.choice([2, 3, 6, 60, 500]), shape)
        if seed % 4 == 0:
            # the same client several times
            counts = counts[rng.integers(0, len(counts), len(counts))]
        if seed % 5 == 0:
            # one client, its classes renamed
            counts = np.stack([rng.permutation(counts[0]) for _ in counts])
        results.append(counts * (counts.sum() > 0))
    return results


def test_greedy_choice_is_the_exact_one_with_ties_to_the_lowest_index():
    ties = 0
    for seed, counts in enumerate(pools()):
        cohort = min(len(counts), 4)
        actual = select(counts, cohort, seed)
        expected, tied = exact_greedy(counts, actual[0], cohort)
        assert actual == expected, counts
        ties += tied
    assert ties > 100


@pytest.mark.parametrize(("deficit", "second"), [(5e-13, 0), (9e-13, 0), (1.1e-12, 1), (5e-12, 1)])
def test_tie_tolerance(deficit: float, second: int):
    """Client 2 is empty. Client 1 has exactly one bit; client 0 with shares 1/2 +- e/2 has e^2 / (2 ln 2) bits less."""
    e = np.sqrt(deficit * 2 * np.log(2))
    counts = np.array([[1 + e, 1 - e], [1.0, 1.0], [0.0, 0.0]])
    seed = next(seed for seed in range(100) if select(counts, 1, seed) == [2])
    assert select(counts, 2, seed)[1] == second


def test_first_pick_is_uniform_over_the_pool():
    counts = np.array([[9, 0], [0, 9], [5, 5], [1, 8], [0, 0], [2, 2], [7, 3], [3, 3]])
    firsts = [select(counts, 2, seed, resting=(1, 4, 6))[0] for seed in range(3000)]
    drawn = np.bincount(firsts, minlength=8)
    assert drawn[[1, 4, 6]].sum() == 0
    assert stats.chisquare(drawn[[0, 2, 3, 5, 7]]).pvalue > 1e-3


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.7, 0.75])
def test_buffer_is_a_queue_that_is_cut_at_the_end_of_the_round(share: float):
    counts = default_rng(1).integers(0, 9, (20, 3))
    selector, queue = Entropy(buffer=share), deque()
    state = selector.begin(labeled(counts, 3), default_rng(0))
    for round in range(40):
        resting = set(queue)
        cohort = selector.select(state, np.arange(20), labeled(counts, 3), default_rng(round))
        assert not resting & set(cohort.tolist())  # who leaves the buffer waits for the next round
        state = selector.observe(state, cohort, {}, labeled(counts, 3))
        queue.extend(cohort.tolist())
        while len(queue) > {0.0: 0, 0.25: 5, 0.5: 10, 0.7: 14, 0.75: 15}[share]:
            queue.popleft()
        assert state["buffer"].tolist() == list(queue)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5])
def test_eviction_after_each_pick_is_algorithm_1(share: float):
    """Line by line as the paper prints it."""
    counts = default_rng(1).integers(0, 9, (12, 3))
    selector, keep = Entropy(buffer=share, evict="pick"), round(share * 12)
    state, buffer = selector.begin(labeled(counts, 3), default_rng(0)), deque()
    for round_ in range(30):
        cohort = selector.select(state, np.arange(12), labeled(counts, 3), default_rng(round_))
        state, result = selector.observe(state, cohort, {}, labeled(counts, 3)), cohort.tolist()
        pooled, free, chosen = np.zeros(3), set(range(12)), []
        for pick in range(3):
            allowed = sorted(free - set(buffer))
            together = {client: (pooled + counts[client]).astype(int) for client in allowed}
            bits = {client: exact_entropy(held.tolist()) for client, held in together.items()}
            highest = max(bits.values()) - Decimal("1e-20")
            first_best = min(client for client in allowed if bits[client] >= highest)
            best = first_best if pick else result[0]
            assert best in allowed
            buffer.append(best)
            while len(buffer) > keep:
                buffer.popleft()
            pooled, chosen = pooled + counts[best], [*chosen, best]
            free.discard(best)
        assert chosen == result
        assert state["buffer"].tolist() == list(buffer)


def test_negative_counts_count_as_none():
    """Ten samples of class 0 and of class 1 are one bit, whatever the negative counts."""
    assert entropy_bits(np.array([10.0, 10.0, -3.0, -0.1])) == pytest.approx(1, abs=1e-15)
    assert entropy_bits(np.array([[-1.0, -2.0]])).tolist() == [0]
    bits = entropy_bits(np.array([[-5.0, 1.0]]), np.array([6.0, 0.0])).tolist()
    assert bits == [pytest.approx(1, abs=1e-15)]


@pytest.mark.alone
def test_ten_of_ten_thousand_clients_cost_a_few_entropies_of_all():
    """100 classes, with half of the clients at rest. Ten looks at the other half are five times the
    entropies of all, which a machine of any speed measures alike."""
    rng = default_rng(0)
    counts = rng.integers(0, 50, (10_000, 100))
    state = {"buffer": rng.permutation(10_000)[:5000]}
    choosing, evaluating = [], []
    for _ in range(7):
        started = time.process_time()
        Entropy().select(state, np.arange(10_000), labeled(counts, 10), default_rng(0))
        choosing.append(time.process_time() - started)
        started = time.process_time()
        entropy_bits(counts)
        evaluating.append(time.process_time() - started)
    assert min(choosing) < 6 * min(evaluating)


@pytest.mark.parametrize(
    ("buffer", "clients", "cohort"), [(0.5, 10, 6), (0.95, 10, 1), (0.75, 100, 26), (0.0, 5, 6)]
)
def test_too_few_clients_outside_the_buffer_are_refused(buffer: float, clients: int, cohort: int):
    Entropy(buffer=buffer).check(clients, cohort - 1)
    with pytest.raises(ValueError, match="leaves fewer than"):
        Entropy(buffer=buffer).check(clients, cohort)


def test_entropy_is_scipys():
    counts = default_rng(0).integers(0, 5, (300, 6))
    counts[counts.sum(axis=1) == 0] = [3, 0, 0, 0, 0, 0]
    expected = stats.entropy(counts, base=2, axis=1)
    np.testing.assert_allclose(entropy_bits(counts), expected, rtol=0, atol=1e-14)
    assert entropy_bits(np.array([7, 7, 7, 7])) == pytest.approx(2, abs=1e-15)
    assert entropy_bits(np.array([0, 9, 0])) == 0
    assert entropy_bits(np.zeros(4)) == 0
