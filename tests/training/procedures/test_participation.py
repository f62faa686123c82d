"""Dropout and stragglers: how many clients, which, and what of their work counts."""

import numpy as np
import pytest
import torch
from scipy import stats

from cohort.core.randomness import generator
from cohort.training.participation import parse_participation
from cohort.training.trainers.serial import SerialTrainer
from tests.training.small_task import run, small_task, train


@pytest.mark.parametrize(
    ("share", "cohort", "gone"),
    [("0.3", 10, 3), ("0.3", 9, 2), ("0.3", 5, 1), ("0.29", 100, 29), ("0.2", 4, 0)],
)
def test_dropout_removes_the_share_rounded_down(share: str, cohort: int, gone: int):
    participation = parse_participation(f"dropout-{share}")
    for seed in range(20):
        responds = participation.responds(np.arange(cohort), np.random.default_rng(seed))
        assert (~responds).sum() == gone


def test_bernoulli_is_independent_for_each_client_and_leaves_one():
    participation, rng = parse_participation("bernoulli-0.3"), np.random.default_rng(0)
    gone = np.array([(~participation.responds(np.arange(10), rng)).sum() for _ in range(2000)])
    expected = stats.binom(10, 0.3).pmf(np.arange(8)) * 2000
    observed = np.bincount(gone, minlength=8)[:8]
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 0.01
    assert all(
        parse_participation("bernoulli-0.99").responds(np.arange(3), rng).any() for _ in range(500)
    )


def test_half_of_the_clients_are_stragglers_for_the_whole_run():
    participation = parse_participation("stragglers-0.5")
    slow = np.bincount(participation.efforts(1000, 5, np.random.default_rng(0)), minlength=6)
    # a fifth of the 500 completes all epochs
    assert slow[0] == 0 and slow[1:5].sum() == pytest.approx(400, abs=40)
    assert stats.chisquare(slow[1:5]).pvalue > 0.01
    many = parse_participation("stragglers-0.29").efforts(100, 10**6, np.random.default_rng(0))
    assert (many < 10**6).sum() == 29


def test_clients_that_drop_out_do_not_train_and_have_their_own_random_draws():
    """The weights are those of a round with only the other clients, merged by hand."""
    task = small_task(participation="dropout-0.5", J="J2e")
    rng = generator(0, "answers", round=1)
    answers = parse_participation("dropout-0.5").responds(np.arange(4), rng)
    state = run(task)
    cohort = state.history.cohorts[0]
    again = small_task(J="J2e")
    updates = train(SerialTrainer(again), again.initial_weights(), cohort[answers])
    for name, tensor in updates.weighted_sum(updates.sizes / updates.sizes.sum()).items():
        assert torch.equal(state.weights[name], tensor)
    assert len(cohort) == 4 and state.history.metrics["updates_used"] == [(1, 2)]
    cost = state.history.cost
    assert cost["bytes_down"][0][1] == 2 * cost["bytes_up"][0][1]


@pytest.mark.parametrize(("J", "batch"), [("J5e", 4), ("J6", 4)])
def test_a_straggler_stops_after_its_epochs(J: str, batch: int):
    """Steps are counted by hand; a straggler's model is that of a run with fewer epochs."""
    task = small_task(participation="stragglers-1", J=J, batch=batch)
    amount = int(J.strip("Je"))
    managed = parse_participation("stragglers-1").efforts(4, amount, generator(0, "stragglers"))
    per_epoch = [
        -(-len(indices) // batch) if J.endswith("e") else 1 for indices in task.shards.indices
    ]
    state = run(task)
    assert state.history.cost["client_steps"] == [(1, sum(managed * per_epoch))]
    models = []
    for client, epochs in enumerate(managed):
        alone = small_task(J=f"J{epochs}" + "e" * J.endswith("e"), batch=batch)
        updates = train(SerialTrainer(alone), alone.initial_weights(), [client])
        models.append(updates.client_weights(0))
    for name, tensor in state.weights.items():
        mean = sum(
            size / task.sizes.sum() * model[name]
            for size, model in zip(task.sizes, models, strict=True)
        )
        torch.testing.assert_close(tensor, mean, rtol=1e-12, atol=1e-14)
