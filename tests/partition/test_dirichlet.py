"""Dirichlet label skew in NIID-Bench's form and the plain one, compared with independent simulations and formulas."""

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.stats import ks_2samp

from cohort.partition import Pool, schemes
from cohort.partition.schemes import Dirichlet, PlainDirichlet

CIFAR10 = np.full(10, 5000)
PATHMNIST = np.array([9366, 9509, 10360, 10401, 8006, 12182, 7886, 9401, 12885])


def acceptance(scheme: Dirichlet, per_class: np.ndarray, clients: int, draws: int) -> float:
    """The share of single draws in which every client reaches the minimum."""
    rng = default_rng(0)
    accepted = [
        np.diff(scheme.draw_cuts(per_class, clients, rng), axis=1).sum(axis=0).min()
        >= scheme.minimum
        for _ in range(draws)
    ]
    return float(np.mean(accepted))


@pytest.mark.parametrize(
    ("alpha", "per_class", "clients", "low", "high"),
    [
        (0.1, CIFAR10, 100, 0.21, 0.24),
        (0.1, np.full(10, 9000), 200, 0.04, 0.04),  # CINIC-10
        (0.1, np.full(20, 2500), 100, 0.96, 0.96),  # CIFAR-100 coarse
        (0.1, PATHMNIST, 100, 0.29, 0.31),
        (0.1, CIFAR10, 20, 0.97, 0.97),
        (0.05, CIFAR10, 20, 0.57, 0.61),
    ],
)
def test_acceptance_of_one_draw_is_that_of_niid_bench(
    alpha: float, per_class: np.ndarray, clients: int, low: float, high: float
):
    """Each within three standard errors of 1,000 draws, and the rounding, of what was simulated
    elsewhere; without the balance rule, fewer draws of CIFAR-10 are accepted."""
    rate = acceptance(Dirichlet(alpha=alpha, minimum=10), per_class, clients, 1000)
    slack = 0.005 + 3 * np.sqrt(low * (1 - low) / 1000)
    assert low - slack <= rate <= high + slack
    if clients == 100 and per_class is CIFAR10:
        assert acceptance(PlainDirichlet(alpha=0.1, minimum=10), CIFAR10, 100, 1000) < 0.19


def test_without_a_minimum_the_first_draw_is_taken_whatever_it_is(monkeypatch: pytest.MonkeyPatch):
    """Where one draw in a thousand million would give everyone a sample: 60 clients and one class, alpha 0.01."""
    monkeypatch.setattr(schemes, "TRIES", 1)
    pool, scheme = Pool(np.zeros(100, int)), PlainDirichlet(alpha=0.01, minimum=0)
    for seed in range(20):
        sizes = list(map(len, scheme.deal(pool, 60, default_rng(seed))))
        assert sum(sizes) == 100 and sizes.count(0) > 40


def slow_cuts(
    rng: np.random.Generator, alpha: float, per_class: np.ndarray, clients: int, balanced: bool
) -> list[list[int]]:
    """A plain implementation of the rule, one client at a time: nothing for who holds the mean
    size, shares for the others, floors of running sums."""
    held = [0] * clients
    lines = []
    for count in per_class:
        allowed = [
            client
            for client in range(clients)
            if not (balanced and held[client] >= sum(per_class) / clients)
        ]
        shares = dict(zip(allowed, rng.dirichlet([alpha] * len(allowed)), strict=True))
        running, line = 0.0, [0]
        for client in range(clients):
            running += shares.get(client, 0.0)
            line.append(int(count) if client >= allowed[-1] else int(running * count))
        held = [
            size + stop - start for size, start, stop in zip(held, line, line[1:], strict=False)
        ]
        lines.append(line)
    return lines


@pytest.mark.parametrize("cls", [Dirichlet, PlainDirichlet])
@pytest.mark.parametrize("seed", range(20))
def test_cuts_follow_the_plain_implementation(cls: type[Dirichlet], seed: int):
    per_class = np.array([700, 300, 1000, 500, 41])
    cuts = cls(alpha=0.4).draw_cuts(per_class, 7, default_rng(seed))
    expected = slow_cuts(default_rng(seed), 0.4, per_class, 7, cls is Dirichlet)
    # a running sum may round across a whole number
    assert np.abs(cuts - np.array(expected)).max() <= 1
    assert (cuts != np.array(expected)).mean() < 0.01


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("alpha", [0.001, 0.01])
def test_a_tiny_alpha_divides_by_nothing(alpha: float):
    for seed in range(100):
        cuts = Dirichlet(alpha=alpha).draw_cuts(np.full(10, 100), 3, default_rng(seed))
        assert (np.diff(cuts, axis=1) >= 0).all() and (cuts[:, -1] == 100).all()


@pytest.mark.parametrize(("cls", "prefix"), [(Dirichlet, "dir"), (PlainDirichlet, "dirplain")])
def test_gives_up_after_many_draws_and_says_what_to_change(
    cls: type[Dirichlet], prefix: str, monkeypatch: pytest.MonkeyPatch
):
    """Four classes, 40 clients, minimum 10: no draw is accepted, as spec and simulation say of the brain scans."""
    monkeypatch.setattr(schemes, "TRIES", 7)
    draws = []
    draw = cls.draw_cuts
    monkeypatch.setattr(cls, "draw_cuts", lambda *arguments: draws.append(1) or draw(*arguments))
    with pytest.raises(ValueError, match="none of 7 draws") as caught:
        cls(alpha=0.05, minimum=10).deal(Pool(np.repeat(np.arange(4), 1428)), 40, default_rng(0))
    assert len(draws) == 7
    for text in ("40 clients", "10 samples", "fewer clients", "larger alpha"):
        assert text in str(caught.value)
    assert f"'{prefix}-0.05" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_shares_by_client():
    """The largest share of a client is distributed as numpy's, where samples are plenty; the last
    client gets what is left, and a tiny alpha one class only."""
    scheme, plenty, rng = schemes.DirichletClients(alpha=0.3), np.full(4, 10**6), default_rng(0)
    ours = [scheme.draw_client(10**5, plenty, rng).max() / 10**5 for _ in range(3000)]
    theirs = default_rng(1).dirichlet(np.full(4, 0.3), 3000).max(axis=1)
    assert ks_2samp(ours, theirs).pvalue > 1e-3
    assert scheme.draw_client(5, np.array([3, 0, 2]), rng).tolist() == [3, 0, 2]
    single = schemes.DirichletClients(alpha=1e-5).draw_client(5, np.full(3, 5), rng)
    assert sorted(single.tolist()) == [0, 0, 5]
