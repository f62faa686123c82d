"""Batch normalization: statistics are averaged, used in evaluation and saved, and batches of one
sample do not update them."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from cohort.training.servers import Average, Momentum
from cohort.training.task import Task
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Updates, Weights
from tests.training.small_task import plain_samples, run, seeded, small_task, train

MEAN, VARIANCE, COUNT = "1.running_mean", "1.running_var", "1.num_batches_tracked"


def network() -> nn.Module:
    """The input is normalized, so that the statistics are those of the samples."""
    return seeded(4, nn.Flatten, partial(nn.BatchNorm1d, 64), partial(nn.Linear, 64, 3))


def trained(
    task: Task, cohort: list[int], round: int = 1, weights: Weights | None = None
) -> Updates:
    return train(SerialTrainer(task), weights or task.initial_weights(), cohort, round)


def pixels(task: Task, client: int) -> np.ndarray:
    return task.train_samples.values[task.shards.indices[client]].flatten(1).numpy()


def test_statistics_after_a_round_are_a_tenth_of_the_samples_own():
    """Clients with four and nine samples take one full-batch step; variances divide by n - 1."""
    task = small_task(model=network(), sizes=(4, 9), batch=100)
    state = run(task)
    first, second = pixels(task, 0), pixels(task, 1)
    mean = (4 * first.mean(axis=0) + 9 * second.mean(axis=0)) / 13
    variance = (4 * first.var(axis=0, ddof=1) + 9 * second.var(axis=0, ddof=1)) / 13
    np.testing.assert_allclose(state.weights[MEAN].numpy(), 0.1 * mean, rtol=1e-12)
    np.testing.assert_allclose(state.weights[VARIANCE].numpy(), 0.9 + 0.1 * variance, rtol=1e-12)
    assert state.weights[COUNT] == 1


def test_a_client_with_one_sample_is_normalized_as_in_evaluation():
    """PyTorch would raise. The weights learn, and the statistics stay at mean 0 and variance 1."""
    task = small_task(model=network(), sizes=(1, 5), J="J2e")
    start = task.initial_weights()
    first = trained(small_task(model=network(), sizes=(1, 5), J="J1e"), [0])
    index = torch.from_numpy(task.shards.indices[0])
    normalized = torch.from_numpy(pixels(task, 0)) / np.sqrt(1 + 1e-5)
    scores = normalized @ start["2.weight"].T + start["2.bias"]
    expected = cross_entropy(scores, task.train_samples.labels[index]).item()
    assert first.losses.item() == pytest.approx(expected, rel=1e-12)
    twice = trained(task, [0])
    assert twice.steps.tolist() == [2] and twice.losses.item() < first.losses.item()
    assert all(torch.equal(twice.weights[name][0], start[name]) for name in (MEAN, VARIANCE, COUNT))
    assert not torch.equal(twice.weights["1.weight"][0], start["1.weight"])


@pytest.mark.parametrize(("J", "steps", "batches"), [("J1e", 2, 1), ("J2e", 4, 2), ("J3", 3, 2)])
def test_a_last_batch_of_one_sample_takes_a_step_but_updates_no_statistics(
    J: str, steps: int, batches: int
):
    """Five samples in batches of four: only the batches of four are counted."""
    updates = trained(small_task(model=network(), sizes=(5, 4), J=J, batch=4), [0])
    assert updates.steps.tolist() == [steps] and updates.weights[COUNT].tolist() == [batches]
    assert all(bool(rows.isfinite().all()) for rows in updates.weights.values())


def test_server_momentum_does_not_apply_to_statistics():
    """Variances fall towards zero; with momentum they would become negative."""
    rng = np.random.default_rng(3)
    values = torch.from_numpy(rng.normal(scale=1e-3, size=(13, 1, 8, 8)))
    train_samples = plain_samples(values, torch.from_numpy(rng.integers(0, 3, 13)))
    settings = {"sizes": (4, 9), "J": "J5", "batch": 100, "rounds": 6, "train": train_samples}
    plain, moved = (
        run(small_task(model=network(), server=server, **settings))
        for server in (Average(), Momentum(beta=0.9))
    )
    assert set(moved.server) == {"1.weight", "1.bias", "2.weight", "2.bias"}
    assert not torch.equal(plain.weights["2.weight"], moved.weights["2.weight"])
    for name in (MEAN, VARIANCE, COUNT):
        assert torch.equal(plain.weights[name], moved.weights[name])
    assert 0 < float(moved.weights[VARIANCE].max()) < 0.05
