"""Batch normalization: statistics are averaged, used in evaluation and saved, and batches of one
sample do not update them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
import yaml
from safetensors import safe_open
from torch import nn
from torch.nn.functional import cross_entropy

from cohort.cell.planned import plan_file, write_plan
from cohort.commands.run import make_inputs, run_cell
from cohort.core.paths import state_folder
from cohort.data.samples import Samples
from cohort.models import MODELS, Model
from cohort.models.networks import Shape
from cohort.plan import load
from cohort.records.record import read
from cohort.training.evaluation import evaluate, fingerprint
from cohort.training.job.lease import CHECKPOINT
from cohort.training.servers import Average, Momentum
from cohort.training.task import Task
from cohort.training.updates import Updates, Weights, stack
from tests.training.small_task import plain_samples, run, small_task, train, trainer_of

MEAN, VARIANCE, COUNT = "1.running_mean", "1.running_var", "1.num_batches_tracked"


def network() -> nn.Module:
    """The input is normalized, so that the statistics are those of the samples."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 3)).double()


def trained(
    task: Task, cohort: list[int], round: int = 1, weights: Weights | None = None
) -> Updates:
    return train(trainer_of(task), weights or task.initial_weights(), cohort, round)


def pixels(task: Task, client: int) -> np.ndarray:
    return task.train_samples.values[task.shards.indices[client]].flatten(1).numpy()


def test_the_mean_of_statistics_by_hand():
    """Sizes 1 and 3: (1 x 1 + 3 x 5) / 4 = 4; (1 x 3 + 3 x 8) / 4 = 6.75 batches become 7."""

    def client(mean: tuple[float, float], variance: tuple[float, float], count: int) -> Weights:
        return {
            "mean": torch.tensor(mean).double(),
            "variance": torch.tensor(variance).double(),
            "count": torch.tensor(count),
        }

    models = [client((1, 2), (0.5, 4), 3), client((5, 6), (1.5, 0), 8)]
    updates = Updates(
        stack(models), torch.tensor([1.0, 3.0]).double(), torch.tensor([1, 1]), torch.zeros(2)
    )
    weights, _, _ = Average().apply(models[0], updates, {})
    assert weights["mean"].tolist() == [4, 5]
    assert weights["variance"].tolist() == [1.25, 1]
    assert (
        weights["count"].dtype == torch.int64
        and weights["count"].shape == ()
        and weights["count"] == 7
    )


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


def test_evaluation_uses_statistics_and_does_not_change_them():
    task = small_task(model=network())
    weights = task.initial_weights()
    weights[MEAN] += 0.5
    weights[VARIANCE] *= 4
    inputs = (task.test_samples.values[task.test].flatten(1) - 0.5) / np.sqrt(4 + 1e-5)
    scores = inputs @ weights["2.weight"].T + weights["2.bias"]
    evaluation = evaluate(task.model, weights, task.test_samples, task.test)
    assert evaluation.loss == pytest.approx(
        cross_entropy(scores, task.test_samples.labels[task.test]).item(), rel=1e-12
    )
    assert fingerprint(task.model.state_dict()) == fingerprint(weights)


def test_a_client_with_one_sample_is_normalized_as_in_evaluation():
    """PyTorch would raise. The weights learn, and the statistics stay at mean 0 and variance 1."""
    task = small_task(model=network(), sizes=(1, 5), J="J2e")
    start = task.initial_weights()
    first = trained(small_task(model=network(), sizes=(1, 5), J="J1e"), [0])
    index = torch.from_numpy(task.shards.indices[0])
    scores = (
        torch.from_numpy(pixels(task, 0)) / np.sqrt(1 + 1e-5) @ start["2.weight"].T
        + start["2.bias"]
    )
    assert first.losses.item() == pytest.approx(
        cross_entropy(scores, task.train_samples.labels[index]).item(), rel=1e-12
    )
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


def test_batches_after_a_single_sample_update_statistics_again():
    """The statistics of a client do not depend on one with a single sample before it."""
    both = trained(small_task(model=network(), sizes=(1, 4), batch=4), [0, 1])
    alone = trained(small_task(model=network(), sizes=(1, 4), batch=4), [1])
    assert both.weights[COUNT].tolist() == [0, 1]
    assert torch.equal(both.weights[VARIANCE][1], alone.weights[VARIANCE][0])


def test_server_momentum_does_not_apply_to_statistics():
    """Variances fall towards zero; with momentum they would become negative."""
    rng = np.random.default_rng(3)
    values = torch.from_numpy(rng.normal(scale=1e-3, size=(13, 1, 8, 8)))
    train_samples = plain_samples(values, torch.from_numpy(rng.integers(0, 3, 13)))
    states = []
    for server in (Average(), Momentum(beta=0.9)):
        states.append(
            run(
                small_task(
                    model=network(),
                    train=train_samples,
                    sizes=(4, 9),
                    J="J5",
                    batch=100,
                    rounds=6,
                    server=server,
                )
            )
        )
    plain, moved = states
    assert set(moved.server) == {"1.weight", "1.bias", "2.weight", "2.bias"}
    assert not torch.equal(plain.weights["2.weight"], moved.weights["2.weight"])
    for name in (MEAN, VARIANCE, COUNT):
        assert torch.equal(plain.weights[name], moved.weights[name])
    assert 0 < float(moved.weights[VARIANCE].max()) < 0.05


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_an_efficientnet_trains_the_same_twice(precision: str):
    """Stochastic depth and dropout depend on client and round, not on what ran before."""
    rng = np.random.default_rng(5)
    dtype = getattr(torch, precision)
    values, labels = (
        torch.from_numpy(rng.normal(size=(9, 3, 32, 32))).to(dtype),
        torch.from_numpy(rng.integers(0, 3, 9)),
    )
    samples = Samples(values, labels, 1.0, torch.zeros(1, dtype=dtype), torch.ones(1, dtype=dtype))
    model = MODELS["efficientnet-b0"]().build((3, 32, 32), 3)
    model = model.to(dtype=dtype, memory_format=torch.channels_last)
    task = small_task(
        model=model, train=samples, sizes=(4, 5), batch=4, J="J1e", lr=0.01, precision=precision
    )
    start = task.initial_weights()
    once = trained(task, [0, 1], weights=start)
    torch.rand(5)
    again = trained(task, [1, 0], weights=start)
    later = trained(task, [0, 1], 2, start)
    prints = [
        fingerprint(updates.client_weights(row))
        for updates, row in ((once, 0), (once, 1), (again, 1), (again, 0), (later, 0))
    ]
    assert prints[0] == prints[2] and prints[1] == prints[3] and prints[4] != prints[0]
    assert all(bool(rows.isfinite().all()) for rows in once.weights.values())


@dataclass(frozen=True, kw_only=True)
class Normalized(Model):
    """For digits: a convolution, batch normalization, a linear layer."""

    name: ClassVar[str] = "normalized"

    def build(self, shape: Shape, classes: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(4 * 36, classes),
        )


def test_a_resumed_cell_leaves_the_record_of_an_uninterrupted_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    """The cell is stopped after three rounds of six. 1,437 samples leave a last batch of one."""
    monkeypatch.setitem(MODELS, "normalized", Normalized)
    settings = {
        "dataset": "digits",
        "model": "normalized",
        "clients": 3,
        "cohort": 2,
        "rounds": 6,
        "batch": 239,
        "lr": 0.05,
    }
    axes = {"partition": ["iid"], "J": ["J1e"], "strategy": ["fedavg"], "seed": [0]}
    study = {"title": "Normalized", "settings": settings, "experiments": {"main": {"axes": axes}}}
    Path("config/studies/study.yaml").write_text(yaml.safe_dump(study))
    plan = load({"studies": "study"})
    (cell,) = plan.cells.values()
    write_plan(cell.planned())
    make_inputs(plan, cell)
    run_cell(plan_file(cell.digest), device="cpu")
    whole = read(cell.path)
    Path(cell.path).unlink()
    run_cell(plan_file(cell.digest), 3, device="cpu")
    with safe_open(state_folder(cell.path) / CHECKPOINT, "np") as saved:
        assert (
            saved.get_tensor("weights/1.num_batches_tracked") == 3 * 2
        )  # a batch of one is not counted
        assert saved.get_tensor("weights/1.running_mean").any()
    run_cell(plan_file(cell.digest), device="cpu")
    continued = read(cell.path)
    assert (
        whole.header["status"] == "done"
        and continued.header["weights_sha256"] == whole.header["weights_sha256"]
    )
    assert whole.history.metrics == continued.history.metrics
