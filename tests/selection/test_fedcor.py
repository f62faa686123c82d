"""FedCor against residual covariances computed anew, and its process against an optimizer."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from cohort.selection.selector import View
from cohort.selection.updates import NOISE, FedCor, fit_probabilistic_pca


def view(cohort: int, sizes: np.ndarray, losses: np.ndarray | None = None) -> View:
    reports = {} if losses is None else {"candidate_loss": losses}
    return View(clients=len(sizes), cohort=cohort, sizes=sizes, reports=reports)


def literal(
    covariance: np.ndarray, sizes: np.ndarray, weights: np.ndarray, cohort: int
) -> list[int]:
    """Each time the client with the largest weighted covariance with all, given those chosen, over
    its own deviation. Conditional covariances are computed from the matrix itself."""
    chosen: list[int] = []
    while len(chosen) < cohort:
        residual = covariance
        if chosen:
            inverse = np.linalg.inv(covariance[np.ix_(chosen, chosen)])
            residual = covariance - covariance[:, chosen] @ inverse @ covariance[chosen]
        scores = {}
        for client in range(len(sizes)):
            if client not in chosen:
                gain = sum(
                    size / sizes.sum() * residual[other, client] for other, size in enumerate(sizes)
                )
                scores[client] = weights[client] * gain / np.sqrt(residual[client, client])
        chosen.append(max(scores, key=scores.__getitem__))
    return chosen


@pytest.mark.parametrize("seed", range(10))
def test_cohorts_are_those_of_the_formulas(seed: int):
    rng = np.random.default_rng(seed)
    points, sizes, chosen = rng.normal(size=(8, 3)), rng.integers(1, 9, 8), rng.integers(0, 4, 8)
    state = FedCor().begin(view(4, sizes), rng)
    state |= {"round": np.array([17]), "points": points, "chosen": chosen}
    cohort = FedCor().select(state, np.arange(8), view(4, sizes), rng)
    covariance = points @ points.T + NOISE**2 * np.eye(8)
    assert cohort.tolist() == literal(covariance, sizes, 0.95**chosen, 4)


def test_points_are_the_likeliest():
    """No better ones are found by an optimizer that begins nearby or far away."""
    rng = np.random.default_rng(0)
    samples, weights = rng.normal(size=(6, 4)) @ rng.normal(size=(4, 4)), 0.9 ** np.arange(6.0)
    mean = weights @ samples / weights.sum()

    def loss(flat: np.ndarray) -> float:
        points = flat.reshape(4, 2)
        process = multivariate_normal(mean, points @ points.T + 0.3**2 * np.eye(4))
        return -float(weights @ process.logpdf(samples))

    points = fit_probabilistic_pca(samples, weights, 2, 0.3)
    best = loss(points.ravel())
    near = points.ravel() + 0.1 * rng.normal(size=8)
    for start in (near, rng.normal(size=8), rng.normal(size=8)):
        assert minimize(loss, start).fun >= best - 1e-6
    nearest = minimize(loss, points.ravel() + 0.1 * rng.normal(size=8)).fun
    assert nearest == pytest.approx(best, abs=1e-4)


def test_when_losses_are_gathered_and_cohorts_random():
    """After 3 rounds every 4th: random are 1, 2, 3, 7, 11; asked is then and in the next rounds."""
    selector, rng, sizes = FedCor(warmup=3, interval=4), np.random.default_rng(0), np.ones(5)
    state, asking, samples = selector.begin(view(2, sizes), rng), [], []
    for round in range(1, 13):
        asks = selector.asks(state, view(2, sizes))
        asking += [round] if asks else []
        full_view = view(2, sizes, rng.random(5) if asks else None)
        cohort = selector.select(state, np.arange(5), full_view, rng)
        state = selector.observe(state, cohort, {}, full_view)
        samples.append(len(state["changes"]))
    assert asking == [1, 2, 3, 4, 7, 8, 11, 12]
    assert samples == [0, 1, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5]
    assert state["ages"].tolist() == [11, 10, 9, 5, 1]


def test_a_chosen_client_counts_less_until_the_next_update():
    selector, rng, sizes = FedCor(warmup=2, interval=3), np.random.default_rng(0), np.ones(4)
    state, counts = selector.begin(view(1, sizes), rng), []
    for _ in range(6):
        losses = rng.random(4) if selector.asks(state, view(1, sizes)) else None
        full_view = view(1, sizes, losses)
        cohort = selector.select(state, np.arange(4), full_view, rng)
        state = selector.observe(state, cohort, {}, full_view)
        counts.append(int(state["chosen"].sum()))
    assert counts == [0, 0, 1, 2, 2, 1]  # rounds 3 and 4, a random one, and 6 after an update


def test_an_infinite_loss_is_no_change():
    state = FedCor().begin(view(1, np.ones(2)), np.random.default_rng(0))
    for losses in ([1.0, 1.0], [2.0, np.inf], [4.0, 1.0]):
        state = FedCor().observe(state, np.array([0]), {}, view(1, np.ones(2), np.array(losses)))
    assert state["changes"].tolist() == [[1, 0], [2, 0]]


def test_losses_fade_and_chosen_clients_count_less_each_at_its_own_rate():
    """Changes of the loss of 0 and 1 with weights of 0.9 and 1 have a variance of p (1 - p), with
    p = 0.9 / 1.9. A client chosen once counts half: 1.2 / 2 is less than 1."""
    fading, rng = FedCor(warmup=9, annealing=0.5, memory_decay=0.9), np.random.default_rng(0)
    state = fading.begin(view(1, np.ones(1), np.zeros(1)), rng)
    for loss in (5.0, 5.0, 6.0):
        lone = view(1, np.ones(1), np.array([loss]))
        state = fading.observe(state, np.array([0]), {}, lone)
    variance = 0.9 / 1.9 * (1 - 0.9 / 1.9)
    assert state["points"][0, 0] ** 2 == pytest.approx(variance - 0.01**2, abs=1e-9)
    lasting, two = FedCor(annealing=0.5, memory_decay=1.0), view(1, np.ones(2))
    state = lasting.begin(two, rng) | {"points": np.diag([1.2, 1.0])}
    state |= {"round": np.array([17]), "chosen": np.array([1, 0])}
    assert lasting.select(state, np.arange(2), two, rng).tolist() == [1]
