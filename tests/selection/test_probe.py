"""Probing: choices replayed from recorded norms by other code, and the probes themselves."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from scipy.stats import chisquare

from cohort.selection.pools import Probe
from cohort.selection.selector import View
from cohort.selection.simple import Random
from cohort.training.ledger import Ledger
from cohort.training.procedures.federated import FederatedRounds, Responders
from cohort.training.procedures.gathering import scatter_rows
from cohort.training.procedures.procedure import Federated
from cohort.training.trainers.serial import SerialTrainer
from tests.selection.views import alike
from tests.training.small_task import small_task


def probed(view: View, pool: np.ndarray, norms: np.ndarray) -> View:
    """The view after a pool was probed: a norm for each of its clients, NaN for all others."""
    reports = {"probe_norm": scatter_rows(norms, pool, len(view.sizes))}
    return dataclasses.replace(view, reports=reports)


def simulate(
    selector: Probe, clients: int, cohort: int, rounds: int, norms: np.ndarray
) -> tuple[list[np.ndarray], list[list[int]]]:
    """Pools and cohorts of a run in which client k moves by norms[round, k]."""
    view, pools, cohorts = alike(clients, cohort, rounds), [], []
    state = selector.begin(view, default_rng(0))
    for round in range(rounds):
        pool = selector.draw_pool(np.arange(clients), view, default_rng([1, round]))
        view_of_pool = probed(view, pool, norms[round, pool])
        chosen = selector.select(state, pool, view_of_pool, default_rng([2, round]))
        state = selector.observe(state, chosen, {}, view)
        pools.append(pool)
        cohorts.append(chosen.tolist())
    return pools, cohorts


def stretched(values: dict[int, float]) -> dict[int, float]:
    low, high = min(values.values()), max(values.values())
    width = high - low if high > low else 1.0
    return {key: (value - low) / width for key, value in values.items()}


def replayed(
    selector: Probe,
    cohort: int,
    rounds: int,
    norms: np.ndarray,
    pools: list[np.ndarray],
    explored: list[list[int]],
) -> list:
    """The algorithm box of the spec with dictionaries; who explores is taken from the run."""
    count, cohorts = dict.fromkeys(range(norms.shape[1]), 0), []
    last = dict.fromkeys(range(norms.shape[1]), -999_999)
    explore = min(round(selector.epsilon * cohort), cohort - 1)
    for t in range(1, rounds + 1):
        pool = pools[t - 1].tolist()
        movement = stretched({k: norms[t - 1, k] for k in pool})
        rare = stretched({k: 1 / (1 + count[k]) for k in pool})
        if not any(count[k] for k in pool):
            rare = dict.fromkeys(pool, 1.0)
        waited = stretched({k: t - last[k] for k in pool})
        fair = stretched({k: 0.6 * rare[k] + 0.4 * waited[k] for k in pool})
        score = {k: (1 - selector.beta) * movement[k] + selector.beta * fair[k] for k in pool}
        forced = sorted(
            (k for k in pool if t - last[k] >= int(selector.patience * rounds)),
            key=lambda k: last[k],
        )[: cohort - explore]
        others = sorted((k for k in pool if k not in forced), key=lambda k: -score[k])
        chosen = (forced + others)[: cohort - explore] + explored[t - 1][cohort - explore :]
        cohorts.append(chosen)
        for k in chosen:
            count[k], last[k] = count[k] + 1, t
    return cohorts


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("beta", [0.0, 0.3, 0.6, 1.0])
def test_choices_replayed_from_the_norms(beta: float, epsilon: float):
    norms = default_rng(7).lognormal(size=(120, 50))
    selector = Probe(beta=beta, epsilon=epsilon)
    pools, cohorts = simulate(selector, 50, 10, 120, norms)
    assert all(len(set(pool)) == 20 for pool in pools)
    assert all(
        len(set(chosen)) == 10 and set(chosen) <= set(pool)
        for pool, chosen in zip(pools, cohorts, strict=True)
    )
    assert cohorts == replayed(selector, 10, 120, norms, pools, cohorts)


def test_explorers_are_drawn_by_the_exponential_of_their_score():
    """One of two exploits, the other is drawn from scores 1/2, 1/4, 0 at temperature 0.5: weights e^1, e^0.5, e^0."""
    selector = Probe(beta=0.0, epsilon=0.5, temperature=0.5, patience=1.0)
    state = selector.begin(alike(4, 2, 10), default_rng(0)) | {"last": np.zeros(4, dtype=np.int64)}
    view_of_pool = probed(alike(4, 2, 10), np.arange(4), np.array([8.0, 4.0, 2.0, 0.0]))
    counts = np.zeros(4)
    for seed in range(20_000):
        first, second = selector.select(state, np.arange(4), view_of_pool, default_rng(seed))
        assert first == 0
        counts[second] += 1
    weights = np.exp([1.0, 0.5, 0.0])
    assert chisquare(counts[1:], weights / weights.sum() * 20_000).pvalue > 1e-3


@pytest.mark.parametrize("norm", [np.nan, np.inf])
def test_a_client_that_diverges_comes_first(norm: float):
    selector, view, clients = Probe(beta=0.0), alike(6, 1, 99), np.arange(6)
    state = selector.begin(view, default_rng(0)) | {"last": np.zeros(6, dtype=int)}
    probes = probed(view, clients, np.array([1, 9, 2, 3, norm, 8]))
    assert selector.select(state, clients, probes, default_rng(1)).tolist() == [4]


def test_all_alike_is_a_draw():
    selector, counts = Probe(beta=0.0, epsilon=0.0), np.zeros(8)
    state = selector.begin(alike(8, 2, 100), default_rng(0)) | {"last": np.zeros(8, dtype=np.int64)}
    view_of_pool = probed(alike(8, 2, 100), np.arange(8), np.ones(8))
    for seed in range(4000):
        counts[selector.select(state, np.arange(8), view_of_pool, default_rng(seed))] += 1
    assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(("batch", "steps"), [(2, 24), (8, 6)])
def test_a_cohort_continues_where_its_probe_ended(batch: int, steps: int):
    """A probe of four batches, or of the only one of an epoch, then the other two epochs with a new
    optimizer: without momentum the same as three epochs at once."""
    selector = Probe(pool=1.0, batches=4, epsilon=0.0)
    task = small_task(selector=selector, J="J3e", batch=batch, lr=0.2, sizes=(8, 8))
    plain = dataclasses.replace(task, selector=Random())
    (probed_first,), (whole,) = (Federated().rounds_of(variant).run(Federated().begin(variant))
                                 for variant in (task, plain))  # fmt: skip
    assert sorted(probed_first.history.cohorts[0].tolist()) == [0, 1]
    assert probed_first.history.cost["client_steps"] == [(1, steps)]
    assert whole.history.cost["client_steps"] == [(1, steps)]
    for name, tensor in whole.weights.items():
        torch.testing.assert_close(probed_first.weights[name], tensor, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(("J", "begins"), [("J3e", [5, 1]), ("J7", [2, 2])])
def test_where_a_cohort_continues_after_its_probe(J: str, begins: list[int]):
    """In epochs the first counts as done, whatever the probe did of it; in steps the probe's."""
    selector = Probe(pool=1.0, batches=2, epsilon=0.0)
    task = small_task(selector=selector, J=J, batch=2)
    rounds = FederatedRounds(Federated(), task)
    state, everybody, ledger = rounds.begin(), np.arange(4), Ledger()
    pool = rounds.screen(state, 1, ledger)
    answers = np.array([False, True, True, False])
    responders = Responders(everybody, answers, task.shards.label_counts)
    works = rounds.local_work(state, responders, pool, 1)
    assert [work.client for work in works] == [1, 2]
    assert [work.begin for work in works] == begins
    for work in works:
        row = pool.probes.clients.index(work.client)
        for name, tensor in work.weights.items():
            assert torch.equal(tensor, pool.probes.weights[name][row])


def test_a_probe_is_the_first_batches_of_a_client():
    selector = Probe(pool=2.0, batches=2, epsilon=0.0)
    settings: dict[str, Any] = {"sizes": (4, 9, 3, 6), "batch": 2, "lr": 0.2, "momentum": 0.9}
    task = small_task(selector=selector, cohort=2, J="J3e", **settings)
    rounds = FederatedRounds(Federated(), task)
    pool = rounds.screen(rounds.begin(), 1, Ledger())
    assert sorted(pool.clients.tolist()) == [0, 1, 2, 3]
    assert pool.probes.steps.tolist() == [2, 2, 2, 2]
    short = small_task(J="J2", **settings)
    start = short.initial_weights()
    trainer = SerialTrainer(short)
    plain = trainer.train(trainer.full_work(start, pool.clients, 1), start)
    for name, rows in plain.weights.items():
        assert torch.equal(pool.probes.weights[name], rows)
    norms = pool.view.reports["probe_norm"]
    for client, norm in enumerate(norms):
        row = pool.probes.clients.index(client)
        parts = [rows[row] - start[name] for name, rows in plain.weights.items()]
        assert norm == pytest.approx(math.sqrt(sum(float((part**2).sum()) for part in parts)))


def test_what_a_probe_costs_is_recorded():
    """Four clients of 4, 9, 2 and 6 samples, two chosen: four receive the model and answer with a
    number, two send it back."""
    selector = Probe(pool=2.0, batches=2, epsilon=0.0)
    task = small_task(selector=selector, cohort=2, J="J3e", batch=2, rounds=3)
    state = Federated().begin(task)
    list(Federated().rounds_of(task).run(state))
    model = sum(tensor.numel() * 8 for tensor in state.weights.values())
    epoch = {0: 2, 1: 5, 2: 1, 3: 3}
    for round, chosen in enumerate(state.history.cohorts):
        assert state.history.cost["bytes_down"][round][1] == 4 * model
        assert state.history.cost["bytes_up"][round][1] == 2 * model + 4 * 8
        probes = sum(min(2, steps) for steps in epoch.values())
        remaining = sum(2 * epoch[client] for client in chosen.tolist())
        assert state.history.cost["client_steps"][round][1] == probes + remaining


def test_the_number_of_explorers_is_rounded():
    """0.2 of four clients are one: the fourth of the cohort is any of three that are alike."""
    norms = np.array([9.0, 8, 7, 6, 6, 6])
    view = dataclasses.replace(alike(6, 4), rounds=99, reports={"probe_norm": norms})
    selector = Probe(beta=0.0, epsilon=0.2, patience=1.0, temperature=1e9)
    state = selector.begin(view, default_rng(0)) | {"last": np.zeros(6, int)}
    cohorts = [selector.select(state, np.arange(6), view, default_rng(i)) for i in range(20)]
    assert {tuple(cohort[:3]) for cohort in cohorts} == {(0, 1, 2)}
    assert len({cohort[3] for cohort in cohorts}) > 1
