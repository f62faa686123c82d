"""Probing: its choices replayed from recorded norms by other code, fairness and starvation, and what the probes themselves do."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from cohort.plan.cost import client_steps
from cohort.records.history import History
from cohort.selection.probe import Probe
from cohort.selection.selector import View
from cohort.training.procedures.federated import Federated
from cohort.training.trainers.serial import SerialTrainer
from tests.training.small_task import small_task


def view(clients: int, cohort: int, rounds: int) -> View:
    return View(clients=clients, cohort=cohort, rounds=rounds, sizes=np.ones(clients))


def simulate(
    selector: Probe, clients: int, cohort: int, rounds: int, norms: np.ndarray
) -> tuple[list[np.ndarray], list[list[int]]]:
    """Pools and cohorts of a run in which client k moves by norms[round, k]."""
    seen, pools, cohorts = view(clients, cohort, rounds), [], []
    state = selector.begin(seen, np.random.default_rng(0))
    for round in range(rounds):
        pool = selector.draw_pool(np.arange(clients), seen, np.random.default_rng([1, round]))
        state = selector.look(state, pool, norms[round, pool])
        chosen = selector.select(state, np.arange(clients), seen, np.random.default_rng([2, round]))
        state = selector.observe(state, chosen, {}, seen)
        pools.append(pool)
        cohorts.append(chosen.tolist())
    return pools, cohorts


def stretched(values: dict[int, float]) -> dict[int, float]:
    low, high = min(values.values()), max(values.values())
    return {
        key: (value - low) / (high - low) if high > low else 0.0 for key, value in values.items()
    }


def replayed(
    selector: Probe,
    cohort: int,
    rounds: int,
    norms: np.ndarray,
    pools: list[np.ndarray],
    explored: list[list[int]],
) -> list:
    """The algorithm box of the spec with dictionaries; who explores is taken from the run."""
    count, last, found = (
        dict.fromkeys(range(norms.shape[1]), 0),
        dict.fromkeys(range(norms.shape[1]), -999_999),
        [],
    )
    explore = min(round(selector.epsilon * cohort), cohort - 1)
    for t in range(1, rounds + 1):
        pool = pools[t - 1].tolist()
        movement = stretched({k: norms[t - 1, k] for k in pool})
        rare = (
            stretched({k: 1 / (1 + count[k]) for k in pool})
            if any(count[k] for k in pool)
            else dict.fromkeys(pool, 1.0)
        )
        waited = stretched({k: t - last[k] for k in pool})
        fair = stretched({k: 0.6 * rare[k] + 0.4 * waited[k] for k in pool})
        score = {k: (1 - selector.beta) * movement[k] + selector.beta * fair[k] for k in pool}
        forced = sorted(
            (k for k in pool if t - last[k] >= int(selector.patience * rounds)),
            key=lambda k: last[k],
        )[: cohort - explore]
        others = sorted((k for k in pool if k not in forced), key=lambda k: -score[k])
        chosen = (forced + others)[: cohort - explore] + explored[t - 1][cohort - explore :]
        found.append(chosen)
        for k in chosen:
            count[k], last[k] = count[k] + 1, t
    return found


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("beta", [0.0, 0.3, 0.6, 1.0])
def test_choices_replayed_from_the_norms(beta: float, epsilon: float):
    norms = np.random.default_rng(7).lognormal(size=(120, 50))
    selector = Probe(beta=beta, epsilon=epsilon)
    pools, cohorts = simulate(selector, 50, 10, 120, norms)
    assert all(len(set(pool)) == 20 for pool in pools)
    assert all(
        len(set(chosen)) == 10 and set(chosen) <= set(pool)
        for pool, chosen in zip(pools, cohorts, strict=True)
    )
    assert cohorts == replayed(selector, 10, 120, norms, pools, cohorts)


@pytest.mark.parametrize(("epsilon", "expected"), [(0.05, 1), (0.1, 2), (0.2, 4), (1.0, 19)])
def test_how_many_explore(epsilon: float, expected: int):
    """Of a cohort of 20; the others are the highest norms where fairness and patience have no say."""
    selector = Probe(beta=0.0, epsilon=epsilon, patience=1.0)
    norms = np.arange(40.0)[::-1]
    state = selector.begin(view(40, 20, 100), np.random.default_rng(0)) | {
        "last": np.zeros(40, dtype=np.int64)
    }
    chosen = selector.select(
        selector.look(state, np.arange(40), norms),
        np.arange(40),
        view(40, 20, 100),
        np.random.default_rng(3),
    )
    assert chosen[: 20 - expected].tolist() == list(range(20 - expected))
    assert len(set(chosen)) == 20


def test_explorers_are_drawn_by_the_exponential_of_their_score():
    """One of two exploits, the other is one of three with scores 1/2, 1/4, 0 at temperature 0.5: e^1, e^0.5, e^0."""
    selector = Probe(beta=0.0, epsilon=0.5, temperature=0.5, patience=1.0)
    state = selector.begin(view(4, 2, 10), np.random.default_rng(0)) | {
        "last": np.zeros(4, dtype=np.int64)
    }
    state, seen = selector.look(state, np.arange(4), np.array([8.0, 4.0, 2.0, 0.0])), np.zeros(4)
    for seed in range(20_000):
        first, second = selector.select(
            state, np.arange(4), view(4, 2, 10), np.random.default_rng(seed)
        )
        assert first == 0
        seen[second] += 1
    weights = np.exp([1.0, 0.5, 0.0])
    assert chisquare(seen[1:], weights / weights.sum() * 20_000).pvalue > 1e-3


def longest_wait(cohorts: list[list[int]], clients: int) -> int:
    """The most rounds from one choice of a client to its next, from the first round on."""
    last, longest = dict.fromkeys(range(clients), 0), 0
    for t, chosen in enumerate(cohorts, start=1):
        for client in chosen:
            longest, last[client] = max(longest, t - last[client]), t
    return max(longest, *(len(cohorts) - round for round in last.values()))


@pytest.mark.parametrize(("clients", "cohort"), [(100, 20), (50, 7), (30, 4)])
def test_full_fairness_lets_nobody_wait(clients: int, cohort: int):
    norms = np.random.default_rng(5).lognormal(size=(500, clients))
    selector = Probe(beta=1.0, epsilon=0.0, pool=clients / cohort, patience=1.0)
    cohorts = simulate(selector, clients, cohort, 500, norms)[1]
    assert longest_wait(cohorts, clients) <= math.ceil(clients / cohort) + 1


def test_without_fairness_clients_starve():
    """Clients that always move least are never chosen once everybody is in the pool and patience has no end."""
    norms = np.random.default_rng(5).lognormal(size=(500, 100)) + np.linspace(0, 20, 100)
    cohorts = simulate(Probe(beta=0.0, epsilon=0.0, pool=5.0, patience=1.0), 100, 20, 500, norms)[1]
    counts = np.bincount(np.concatenate(cohorts), minlength=100)
    assert np.count_nonzero(counts <= 5) > 30  # those that were never chosen count as forced, once
    assert longest_wait(cohorts, 100) > 400


def test_patience_cures_starvation():
    norms = np.random.default_rng(5).lognormal(size=(500, 100)) + np.linspace(0, 20, 100)
    cohorts = simulate(Probe(beta=0.0, epsilon=0.0, pool=5.0, patience=0.1), 100, 20, 500, norms)[1]
    assert longest_wait(cohorts, 100) <= 50 + 5


def test_all_alike_is_a_draw():
    selector, seen = Probe(beta=0.0, epsilon=0.0), np.zeros(8)
    state = selector.begin(view(8, 2, 100), np.random.default_rng(0)) | {
        "last": np.zeros(8, dtype=np.int64)
    }
    state = selector.look(state, np.arange(8), np.ones(8))
    for seed in range(4000):
        seen[
            selector.select(state, np.arange(8), view(8, 2, 100), np.random.default_rng(seed))
        ] += 1
    assert chisquare(seen).pvalue > 1e-3


def trainer_of(**settings) -> tuple[SerialTrainer, dict[str, torch.Tensor]]:
    task = small_task(J="J3e", batch=2, lr=0.2, momentum=0.9, **settings)
    return SerialTrainer(
        task.model, task.settings, task.objective, task.train_samples, task.shards.indices
    ), task.initial_weights()


def test_a_cohort_goes_on_where_its_probe_ended():
    """A probe of as many batches as the first epoch has, and then the other epochs with a fresh optimizer: in one go without momentum."""
    task = small_task(J="J3e", batch=2, lr=0.2, sizes=(8, 8))
    trainer = SerialTrainer(
        task.model, task.settings, task.objective, task.train_samples, task.shards.indices
    )
    start, both = task.initial_weights(), np.array([0, 1])
    probed = trainer.probe(start, both, 1, 4)
    found, whole = trainer.train(start, both, 1, probed), trainer.train(start, both, 1)
    assert probed.updates.steps.tolist() == [4, 4]
    assert found.steps.tolist() == [8, 8]
    assert whole.steps.tolist() == [12, 12]
    for name in start:
        assert torch.equal(found.weights[name], whole.weights[name])


def test_a_probe_is_the_first_batches_of_a_client():
    trainer, start = trainer_of()
    probed = trainer.probe(start, np.array([3, 1]), 1, 2)
    assert probed.updates.steps.tolist() == [2, 2]
    shorter = small_task(J="J2", batch=2, lr=0.2, momentum=0.9)
    plain = SerialTrainer(
        shorter.model,
        shorter.settings,
        shorter.objective,
        shorter.train_samples,
        shorter.shards.indices,
    )
    for name, rows in plain.train(start, np.array([3, 1]), 1).weights.items():
        assert torch.equal(probed.updates.weights[name], rows)
    assert torch.equal(probed.of(1)["1.weight"], probed.updates.weights["1.weight"][1])


def test_what_a_probe_costs_is_recorded():
    """Four clients of 4, 9, 2 and 6 samples, two chosen: four are sent the model and answer with a number, two send it back."""
    task = small_task(
        selector=Probe(pool=2.0, batches=2, epsilon=0.0), cohort=2, J="J3e", batch=2, rounds=3
    )
    state = Federated().begin(task)
    list(Federated().rounds(task, state))
    model = sum(tensor.numel() * 8 for tensor in state.weights.values())
    epoch = {0: 2, 1: 5, 2: 1, 3: 3}
    for round, chosen in enumerate(state.history.cohorts):
        assert state.history.cost["bytes_down"][round][1] == 4 * model
        assert state.history.cost["bytes_up"][round][1] == 2 * model + 4 * 8
        probes = sum(min(2, 3 * steps) for steps in epoch.values())
        assert state.history.cost["client_steps"][round][1] == probes + sum(
            2 * epoch[client] for client in chosen.tolist()
        )


def test_what_a_run_records_is_enough_to_replay_it():
    """Pools and norms of the record, as they come back from its arrays, lead other code to the recorded cohorts."""
    selector = Probe(pool=2.0, batches=1, epsilon=0.0, beta=0.4)
    task = small_task(
        selector=selector, cohort=2, J="J2e", batch=2, rounds=12, sizes=(4, 9, 2, 6, 5, 3)
    )
    state = Federated().begin(task)
    list(Federated().rounds(task, state))
    history = History.from_arrays(state.history.arrays())
    assert len(history.pools) == 12 and all(len(set(pool.tolist())) == 4 for pool in history.pools)
    norms = np.zeros((12, 6))
    for round, (pool, found) in enumerate(zip(history.pools, history.norms, strict=True)):
        norms[round, pool] = found
    cohorts = [cohort.tolist() for cohort in history.cohorts]
    assert cohorts == replayed(selector, 2, 12, norms, history.pools, cohorts)


def test_what_probing_is_estimated_to_cost():
    """Clients of four batches: 40 probes of two batches, and 20 clients with three further epochs, in each of 400 rounds."""
    settings = {
        "J": "J4e",
        "samples": 1,
        "clients": 100,
        "cohort": 20,
        "batch": 128,
        "rounds": 400,
        "validation": 5000,
    }
    settings |= {"procedure": "federated"}
    selector = {"name": "probe"} | dataclasses.asdict(Probe())
    assert client_steps(settings | {"selector": selector}, {"train": 50_000}) == 400 * (
        40 * 2 + 20 * 3 * 4
    )
    assert client_steps(settings | {"selector": selector, "J": "J4"}, {"train": 50_000}) == 400 * (
        40 * 2 + 20 * 2
    )
    assert (
        client_steps(settings | {"selector": {"name": "random"}}, {"train": 50_000})
        == 400 * 20 * 16
    )
