"""The serial trainer: clients are independent, J counts steps or epochs, draws are addressed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cohort.selection import Selector
from cohort.selection.simple import HighestLoss, Random
from cohort.training.evaluation import fingerprint
from cohort.training.objectives import CrossEntropy, Objective
from cohort.training.task import Task
from cohort.training.updates import Updates, Weights
from tests.training import small_task as small
from tests.training.small_task import plain_samples, small_task, trainer_of


def train(task: Task, cohort: list[int], round: int = 1, weights: Weights | None = None) -> Updates:
    return small.train(trainer_of(task), weights or task.initial_weights(), cohort, round)


def local_models(updates: Updates, cohort: list[int]) -> dict[int, tuple[str, float, int]]:
    """The fingerprint of each client's model, its loss and its steps."""
    results = {}
    for row, client in enumerate(cohort):
        results[client] = (
            fingerprint(updates.client_weights(row)),
            float(updates.losses[row]),
            int(updates.steps[row]),
        )
    return results


def network_with_dropout() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        return nn.Sequential(
            nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3)
        ).double()


def chance_task(**settings) -> Task:
    """Batches, momentum and dropout: whatever could leak from one client to the next."""
    return small_task(model=network_with_dropout(), J="J2e", batch=2, momentum=0.9, **settings)


@pytest.mark.parametrize("cohort", [[3, 1, 0, 2], [2, 0], [1], [3, 2]])
def test_a_clients_model_does_not_depend_on_the_rest_of_the_cohort(cohort: list[int]):
    """Neither the order of the cohort nor who else is in it changes a bit."""
    everybody = local_models(train(chance_task(), [0, 1, 2, 3]), [0, 1, 2, 3])
    assert len({model for model, _, _ in everybody.values()}) == 4
    assert local_models(train(chance_task(), cohort), cohort) == {
        client: everybody[client] for client in cohort
    }


def test_neither_global_weights_nor_global_random_state_matter():
    task = chance_task()
    weights = task.initial_weights()
    before = fingerprint(weights)
    once = train(task, [0, 2], weights=weights)
    torch.manual_seed(12345)
    torch.rand(7)
    again = train(task, [0, 2], weights=weights)
    assert fingerprint(weights) == before
    assert local_models(once, [0, 2]) == local_models(again, [0, 2])
    assert fingerprint(once.client_weights(0)) != before


@pytest.mark.parametrize("change", [{"round": 2}, {"seed": 1}])
def test_another_round_or_seed_trains_another_model(change: dict[str, int]):
    base = train(chance_task(), [0])
    other = train(chance_task(seed=change.get("seed", 0)), [0], round=change.get("round", 1))
    assert fingerprint(base.client_weights(0)) != fingerprint(other.client_weights(0))


def test_dropout_is_on_and_drawn_anew_in_each_round():
    """One step on all samples: without dropout two rounds would agree but for rounding."""
    task = small_task(model=network_with_dropout(), batch=1000)
    weights = task.initial_weights()
    models = [train(task, [0], round, weights).client_weights(0)["1.weight"] for round in (1, 2)]
    assert (models[0] - models[1]).abs().max() > 1e-3


@dataclass(frozen=True, kw_only=True)
class Watch(Objective):
    """Cross-entropy that notes the labels of each batch, which here name the samples."""

    name: ClassVar[str] = "watch"
    batches: list[list[int]] = field(default_factory=list)

    def losses(self, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        self.batches.append(targets.tolist())
        return torch.nn.functional.cross_entropy(outputs, targets, reduction="none")


SIZES = (10, 7, 4, 12)


def named_samples_task(**changes) -> Task:
    """A task in which every sample is a class of its own."""
    total = sum(SIZES)
    samples = plain_samples(
        torch.arange(total, dtype=torch.float64).view(-1, 1, 1, 1).expand(-1, 1, 8, 8) / total,
        torch.arange(total),
    )
    test = plain_samples(
        torch.ones(20, 1, 8, 8, dtype=torch.float64), torch.zeros(20, dtype=torch.int64)
    )
    return small_task(
        **(
            {
                "train": samples,
                "test": test,
                "classes": total,
                "sizes": SIZES,
                "objective": Watch(),
                "batch": 4,
            }
            | changes
        )
    )


def seen(task: Task, client: int, round: int = 1) -> list[list[int]]:
    updates = train(task, [client], round)
    watch = task.objective
    assert isinstance(watch, Watch)
    assert int(updates.steps[0]) == len(watch.batches)
    return watch.batches


@pytest.mark.parametrize(
    ("client", "per_epoch"), [(0, [4, 4, 2]), (1, [4, 3]), (2, [4]), (3, [4, 4, 4])]
)
def test_epochs_cover_every_sample_once_and_keep_the_last_partial_batch(
    client: int, per_epoch: list[int]
):
    task = named_samples_task(J="J3e")
    batches = seen(task, client)
    assert [len(batch) for batch in batches] == per_epoch * 3
    own = sorted(task.shards.indices[client].tolist())
    epochs = [
        batches[start : start + len(per_epoch)] for start in range(0, len(batches), len(per_epoch))
    ]
    for epoch in epochs:
        assert sorted(chain(*epoch)) == own
    if client != 2:
        assert epochs[0] != epochs[1]  # each epoch has its own order


@pytest.mark.parametrize(
    ("J", "sizes"),
    [("J1", [4]), ("J2", [4, 4]), ("J3", [4, 4, 2]), ("J8", [4, 4, 2, 4, 4, 2, 4, 4])],
)
def test_steps_continue_from_epoch_to_epoch(J: str, sizes: list[int]):
    task = named_samples_task(J=J)
    batches = seen(task, 0)
    assert [len(batch) for batch in batches] == sizes
    own = task.shards.indices[0].tolist()
    for start in range(0, len(batches), 3):
        epoch = list(chain(*batches[start : start + 3]))
        assert len(set(epoch)) == len(epoch)
        assert set(epoch) <= set(own)
        assert start + 3 > len(batches) or sorted(epoch) == sorted(own)


def test_a_batch_larger_than_the_data_holds_all_of_it():
    task = named_samples_task(J="J3", batch=100)
    assert [sorted(batch) for batch in seen(task, 1)] == [
        sorted(task.shards.indices[1].tolist())
    ] * 3


def test_every_order_of_a_small_client_is_equally_likely():
    """Client 2 holds four samples, in batches of one: each comes first in about 100 of 400 rounds,
    with a standard deviation of 8.7."""
    firsts = [seen(named_samples_task(J="J1", batch=1), 2, round)[0][0] for round in range(1, 401)]
    counts = np.unique(firsts, return_counts=True)[1]
    assert len(counts) == 4
    assert np.abs(counts - 100).max() < 4 * 8.7


def test_batches_differ_between_rounds_clients_and_seeds():
    base = seen(named_samples_task(J="J1e"), 0)
    assert base == seen(named_samples_task(J="J1e"), 0)
    assert base != seen(named_samples_task(J="J1e"), 0, round=2)
    assert base != seen(named_samples_task(J="J1e", seed=1), 0)
    same_size = named_samples_task(J="J1e", sizes=(11, 11, 11))
    places = []
    for client in (0, 1):
        same_size.objective.batches.clear()
        order = chain(*seen(same_size, client))
        places.append([same_size.shards.indices[client].tolist().index(sample) for sample in order])
    assert places[0] != places[1]


def test_batches_agree_between_strategies():
    """Where two selectors choose the same client in a round, it sees the same batches."""
    seen_by = []
    for selector in (Random(), HighestLoss()):
        seen_by.append(batches_of_a_run(selector))
    shared = set(seen_by[0]) & set(seen_by[1])
    assert len(shared) > 5
    assert set(seen_by[0]) != set(seen_by[1])
    for address in shared:
        assert seen_by[0][address] == seen_by[1][address]


def batches_of_a_run(selector: Selector) -> dict[tuple[int, int], list[list[int]]]:
    task = named_samples_task(selector=selector, cohort=2, rounds=12, J="J3")
    owner = {
        sample: client
        for client, indices in enumerate(task.shards.indices)
        for sample in indices.tolist()
    }
    result = defaultdict(list)
    for state in task.procedure.rounds(task, task.procedure.begin(task)):
        for batch in task.objective.batches:
            result[state.round, owner[batch[0]]].append(batch)
        task.objective.batches.clear()
    return result


@dataclass(frozen=True, kw_only=True)
class Slope(Objective):
    """The mean output: with one weight and an input of 1 the gradient is always 1."""

    name: ClassVar[str] = "slope"

    def losses(self, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return outputs.mean(dim=1)


@pytest.mark.parametrize("round", [1, 2, 5, 40])
def test_learning_rate_decays_from_round_to_round(round: int):
    """Three steps with gradient 1 from weight 0 end at -3 lr decay^(round - 1)."""
    samples = plain_samples(
        torch.ones(6, 1, dtype=torch.float64), torch.zeros(6, dtype=torch.int64)
    )
    model = nn.Linear(1, 1, bias=False).double()
    settings = {"J": "J3", "lr": 0.25, "lr_decay": 0.5}
    task = small_task(
        model=model, train=samples, objective=Slope(), classes=1, sizes=(2, 4), **settings
    )
    updates = train(task, [0, 1], round, {"weight": torch.zeros(1, 1, dtype=torch.float64)})
    expected = -3 * 0.25 / 2 ** (round - 1)
    assert updates.weights["weight"][:, 0, 0].tolist() == [
        expected,
        expected,
    ]  # powers of two: exact


def test_the_loss_reported_is_the_mean_over_the_batches():
    """Weight 0, gradient 1, lr 1/4, three steps: losses 0, -1/4 and -1/2, whose mean is -1/4."""
    samples = plain_samples(
        torch.ones(6, 1, dtype=torch.float64), torch.zeros(6, dtype=torch.int64)
    )
    model = nn.Linear(1, 1, bias=False).double()
    task = small_task(
        model=model, train=samples, objective=Slope(), classes=1, sizes=(2, 4), J="J3", lr=0.25
    )
    assert train(
        task, [0, 1], 1, {"weight": torch.zeros(1, 1, dtype=torch.float64)}
    ).losses.tolist() == [-0.25, -0.25]


def test_updates_have_one_row_per_client_in_the_order_of_the_cohort():
    task = small_task(J="J2e", objective=CrossEntropy())
    updates = train(task, [2, 0, 3])
    assert updates.sizes.tolist() == [2, 4, 6]
    assert updates.steps.tolist() == [2, 2, 4]
    assert {key: rows.shape for key, rows in updates.weights.items()} == {
        key: (3, *tensor.shape) for key, tensor in task.initial_weights().items()
    }
