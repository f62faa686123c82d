"""The serial trainer: clients are independent, J counts steps or epochs, draws are addressed."""

from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cohort.core.randomness import torch_seed
from cohort.training.evaluation import fingerprint
from cohort.training.task import Task
from cohort.training.trainers.serial import PlainSGD, SerialTrainer
from cohort.training.updates import LocalWork, Updates, Weights
from tests.training import small_task as small
from tests.training.small_task import seeded, small_settings, small_task


def train(task: Task, cohort: list[int], round: int = 1, weights: Weights | None = None) -> Updates:
    return small.train(SerialTrainer(task), weights or task.initial_weights(), cohort, round)


def local_models(updates: Updates, cohort: list[int]) -> dict[int, tuple[str, float, int]]:
    """The fingerprint of each client's model, its loss and its steps."""
    prints = [fingerprint(updates.client_weights(row)) for row in range(len(cohort))]
    numbers = zip(prints, updates.losses.tolist(), updates.steps.tolist(), strict=True)
    return dict(zip(cohort, numbers, strict=True))


def network_with_dropout() -> nn.Module:
    first = nn.Flatten, partial(nn.Linear, 64, 16), nn.ReLU, nn.Dropout
    return seeded(4, *first, partial(nn.Linear, 16, 3))


def chance_task(**settings) -> Task:
    """Batches, momentum and dropout: whatever could leak from one client to the next."""
    return small_task(model=network_with_dropout(), J="J2e", batch=2, momentum=0.9, **settings)


@pytest.mark.parametrize("cohort", [[3, 1, 0, 2], [2, 0], [1], [3, 2]])
def test_a_clients_model_does_not_depend_on_the_rest_of_the_cohort(cohort: list[int]):
    """Neither the order of the cohort nor who else is in it changes a bit."""
    everybody = local_models(train(chance_task(), [0, 1, 2, 3]), [0, 1, 2, 3])
    assert len({model for model, _, _ in everybody.values()}) == 4
    expected = {client: everybody[client] for client in cohort}
    assert local_models(train(chance_task(), cohort), cohort) == expected


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


def batches(size: int, client: int = 2, round: int = 5, **settings: Any) -> list[list[int]]:
    """The batches of a client, as places in its shard."""
    options = {key: settings.pop(key) for key in ("begin", "end", "in_order") if key in settings}
    options |= {"client": client, "round": round, "weights": {}, "lr": 0.1}
    work = LocalWork(samples=np.arange(size), **options)
    return [batch.tolist() for _, batch in work.steps(small_settings(**settings))]


@pytest.mark.parametrize("size", [1, 4, 7, 10, 12])
@pytest.mark.parametrize("J", ["J1", "J2", "J8", "J3e"])
def test_every_epoch_covers_the_shard_once_and_keeps_its_last_short_batch(size: int, J: str):
    """In batches of four; J8 continues from epoch to epoch."""
    taken, per_epoch = batches(size, J=J), -(-size // 4)
    assert len(taken) == (3 * per_epoch if J == "J3e" else int(J[1:]))
    for start in range(0, len(taken), per_epoch):
        epoch = taken[start : start + per_epoch]
        sizes = ([4] * (size // 4) + [size % 4] * (size % 4 > 0))[: len(epoch)]
        assert [len(batch) for batch in epoch] == sizes
        assert len(set(chain(*epoch))) == sum(sizes) and set(chain(*epoch)) <= set(range(size))
    if J == "J3e" and size > 4:
        assert taken[:per_epoch] != taken[per_epoch : 2 * per_epoch]  # each in its own order
    assert batches(size, J=J, begin=1, end=2) == taken[1:2]


def test_batches_depend_on_round_client_and_seed():
    base = batches(11, J="J1e")
    assert base == batches(11, J="J1e")
    changes = {"round": 2}, {"client": 1}, {"seed": 1}
    assert all(base != batches(11, J="J1e", **change) for change in changes)
    assert list(chain(*batches(11, J="J1e", in_order=True))) == list(range(11))
    assert batches(0, J="J3") == []


def test_parameters_without_a_gradient_in_some_steps_move_as_by_torch():
    rng, starts = torch.Generator().manual_seed(0), torch.tensor([[1.0, -2.0], [3.0, 0.5]])
    pairs = [[torch.nn.Parameter(row.clone()) for row in starts] for _ in range(2)]
    ours = PlainSGD(pairs[0], 0.1, 0.9, 0.01)
    theirs = torch.optim.SGD(pairs[1], 0.1, 0.9, weight_decay=0.01)
    for moved in ((0,), (0, 1), (1,), (), (0, 1)):
        gradients = {index: torch.randn(2, generator=rng) for index in moved}
        for parameters, optimizer in zip(pairs, (ours, theirs), strict=True):
            for index, parameter in enumerate(parameters):
                parameter.grad = gradients[index].clone() if index in moved else None
            optimizer.step()
        torch.testing.assert_close(pairs[0], pairs[1])


def test_dropout_after_a_probe_is_not_that_of_the_probe():
    settings = small_settings(seed=4)
    work = LocalWork(client=3, round=2, weights={}, samples=np.arange(4), lr=0.1)
    assert work.dropout_seed(settings) == torch_seed(4, "dropout", round=2, client=3)
    assert replace(work, begin=2).dropout_seed(settings) != work.dropout_seed(settings)
