"""The batched trainer against the serial one: each client of one round, by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.training.objectives import OBJECTIVES as OBJECTIVES_OF_THE_HOUSE
from cohort.training.objectives import Objective
from cohort.training.objectives.cross_entropy import CrossEntropy
from cohort.training.objectives.fedlc import FedLC
from cohort.training.objectives.fedprox import FedProx
from cohort.training.objectives.fedrs import FedRS
from cohort.training.procedures.federated import Federated
from cohort.training.servers import ServerRule
from cohort.training.servers.average import Average
from cohort.training.servers.fednova import FedNova
from cohort.training.servers.scaffold import Scaffold
from cohort.training.task import Task
from cohort.training.trainers import trainer_for
from cohort.training.trainers.base import Orders, Trainer
from cohort.training.trainers.batched.trainer import BatchedTrainer
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Updates, Weights
from tests.training.small_task import CLASSES, plain_samples, small_task

SIZES = (
    4,
    9,
    2,
    6,
    1,
    13,
    8,
    8,
    5,
    3,
    16,
)  # with batches of 4: from one step to four for an epoch, and last batches of every size
OBJECTIVES = [CrossEntropy(), FedProx(mu=0.3), FedRS(alpha=0.5), FedLC(tau=0.7)]


def trainer(kind: type[Trainer], task: Task) -> Trainer:
    return kind(task.model, task.settings, task.objective, task.train_samples, task.shards.indices)


def both(task: Task, cohort: list[int], **how: Any) -> tuple[Updates, Updates]:
    """One round by either trainer, in which every client with samples went somewhere."""
    weights = task.initial_weights()
    found = [
        trainer(kind, task).train(weights, np.array(cohort), 3, **how)
        for kind in (SerialTrainer, BatchedTrainer)
    ]
    assert (found[0].distances(weights)[found[0].steps > 0] > 1e-3).all()
    return found[0], found[1]


def assert_same(serial: Updates, batched: Updates, rtol: float = 1e-10) -> None:
    assert serial.clients == batched.clients
    assert torch.equal(serial.steps, batched.steps) and torch.equal(serial.sizes, batched.sizes)
    torch.testing.assert_close(batched.losses, serial.losses, rtol=rtol, atol=0, equal_nan=True)
    for row in range(len(serial.clients)):
        for name, tensor in serial.of_client(row).items():
            difference = (batched.weights[name][row] - tensor).norm() / tensor.norm()
            assert difference < rtol, (row, name, float(difference))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: objective.name)
@pytest.mark.parametrize("J", ["J1", "J3", "J2e"])
def test_every_objective_and_unequal_clients(objective: Objective, J: str):
    task = small_task(objective=objective, sizes=SIZES, J=J, momentum=0.9, weight_decay=0.01)
    assert_same(*both(task, [10, 2, 7, 0, 4, 5]))


def test_every_objective_is_tried():
    assert {type(objective) for objective in OBJECTIVES} == set(OBJECTIVES_OF_THE_HOUSE.values())


def test_more_clients_than_heights_and_clients_without_samples():
    """Of eleven clients the stack shrinks two by two, and one has nothing."""
    task = small_task(sizes=(*SIZES[:-1], 0), J="J2e", momentum=0.5)
    serial, batched = both(task, list(range(11)))
    assert_same(serial, batched)
    assert batched.steps[10] == 0 and batched.losses[10].isnan()


def test_what_others_hold_does_not_matter():
    """Short batches are filled up with a client's own samples: one that is no number, of a client who is not asked, spoils nobody."""
    task = small_task(sizes=SIZES, J="J2e")
    task.train_samples.values[0] = torch.nan
    owner = next(client for client, indices in enumerate(task.shards.indices) if 0 in indices)
    serial, batched = both(task, [client for client in range(len(SIZES)) if client != owner])
    assert_same(serial, batched)
    assert serial.losses.isfinite().all()


def test_who_is_done_stands_still():
    """Client 3 has two steps, and stays in the stack for a third, in which its outputs would be too large to be numbers."""
    task = small_task(sizes=SIZES, J="J1e")
    task.train_samples.values[task.shards.indices[3]] *= 1e70
    serial, batched = both(task, list(range(len(SIZES))))
    assert_same(serial, batched)
    assert 1e120 < serial.of_client(3)["1.weight"].abs().max() < torch.inf


def test_gradients_are_clipped_client_by_client():
    task = small_task(sizes=SIZES, J="J3", clip=0.2)
    assert_same(*both(task, [1, 5, 9]))
    free, _ = both(small_task(sizes=SIZES, J="J3"), [1, 5, 9])
    assert (
        free.distances(task.initial_weights())
        > both(task, [1, 5, 9])[0].distances(task.initial_weights())
    ).all()


@pytest.mark.parametrize("augmentation", sorted(set(AUGMENTATIONS) - {"none"}))
def test_augmentation(augmentation: str):
    rng = np.random.default_rng(8)
    train = plain_samples(
        torch.from_numpy(rng.random((sum(SIZES), 3, 8, 8))),
        torch.from_numpy(rng.integers(0, CLASSES, sum(SIZES))),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = MODELS["small-cnn"]().build((3, 8, 8), CLASSES).double()
    task = small_task(model=model, train=train, sizes=SIZES, J="J2e", augmentation=augmentation)
    assert_same(*both(task, [10, 3, 1, 8]))


def test_orders():
    """Some of the samples, fewer steps, and a drift."""
    task = small_task(sizes=SIZES, J="J2e")

    def drift(client: int) -> Weights:
        return {
            name: torch.full_like(tensor, 0.01 * client)
            for name, tensor in task.initial_weights().items()
        }

    orders = Orders({1: task.shards.indices[1][:5]}, {5: 3}, drift)
    serial, batched = both(task, [1, 5, 8], orders=orders)
    assert_same(serial, batched)
    assert serial.steps.tolist() == [4, 3, 4]


@pytest.mark.parametrize("J", ["J5", "J2e"])
def test_probes(J: str):
    task, pool = small_task(sizes=SIZES, J=J, momentum=0.9), np.array([5, 2, 10, 7])
    weights, found = task.initial_weights(), []
    for kind in (SerialTrainer, BatchedTrainer):
        probed = trainer(kind, task).probe(weights, pool, 2, 1)
        found.append((probed, trainer(kind, task).train(weights, np.array([10, 5]), 2, probed)))
    (first, serial), (second, batched) = found
    assert_same(first.updates, second.updates)
    assert_same(serial, batched)


@pytest.mark.parametrize("name", ["lenet5", "aml-lenet", "vgg11"])
def test_convolutions_in_float32(name: str):
    """To 1e-5 of each weight tensor after one round; in float64 they agree to 1e-10."""
    rng = np.random.default_rng(8)
    values, labels = rng.random((40, 3, 32, 32)), rng.integers(0, CLASSES, 40)
    for dtype, rtol in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        zero, one = torch.tensor([0, 1], dtype=dtype).split(1)
        train = Samples(
            torch.from_numpy(values).to(dtype), torch.from_numpy(labels), 1.0, zero, one
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            model = MODELS[name]().build((3, 32, 32), CLASSES).to(dtype)
        task = small_task(
            model=model,
            train=train,
            test=train,
            sizes=(12, 20, 8),
            J="J1e",
            batch=8,
            lr=0.05,
            momentum=0.9,
        )
        assert_same(*both(task, [0, 1, 2]), rtol=rtol)


def test_a_trainer_serves_rounds_and_cohorts_of_any_size():
    task = small_task(sizes=SIZES, J="J2e", momentum=0.9)
    weights, lasting = task.initial_weights(), trainer(BatchedTrainer, task)
    for round, cohort in enumerate([[3, 5], [9, 0, 1, 6, 10, 2], [7], [0, 1, 2]], start=1):
        serial = trainer(SerialTrainer, task).train(weights, np.array(cohort), round)
        assert_same(serial, lasting.train(weights, np.array(cohort), round))


def test_what_does_not_fit():
    def fits(model: nn.Module, **settings: Any) -> bool:
        return BatchedTrainer.fits(model, small_task(**settings).settings)

    shape = (3, 32, 32)
    assert all(
        fits(MODELS[name]().build(shape, 10))
        for name in ("small-mlp", "small-cnn", "lenet5", "vgg11")
    )
    assert not fits(MODELS["vgg11-bn"]().build(shape, 10))
    assert not fits(MODELS["char-lstm"]().build((20,), 30))
    assert not fits(nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 3)))
    assert not fits(MODELS["lenet5"]().build(shape, 10), optimizer="adam")
    assert not fits(MODELS["lenet5"]().build(shape, 10), procedure="concat-2")


def test_auto_is_batched_on_a_gpu_and_chained_on_a_processor_where_they_fit():
    settings, (lenet, normalized) = (
        small_task().settings,
        (MODELS[name]().build((3, 32, 32), 10) for name in ("lenet5", "vgg11-bn")),
    )
    card, processor = torch.device("cuda"), torch.device("cpu")
    assert (
        trainer_for("auto", card, lenet, settings)
        == trainer_for("batched", processor, lenet, settings)
        == "batched"
    )
    assert (
        trainer_for("auto", processor, lenet, settings)
        == trainer_for("chained", card, lenet, settings)
        == "chained"
    )
    assert (
        trainer_for("serial", card, lenet, settings)
        == trainer_for("auto", processor, normalized, settings)
        == "serial"
    )
    assert (
        trainer_for("auto", card, normalized, settings)
        == trainer_for("batched", processor, normalized, settings)
        == "serial"
    )


@pytest.mark.parametrize(
    "server", [Average(), Scaffold(), FedNova()], ids=lambda server: server.name
)
def test_whole_runs(server: ServerRule):
    """Four rounds with selection, dropout of clients and evaluation."""
    states = []
    for kind in ("serial", "batched"):
        task = small_task(
            server=server,
            sizes=SIZES,
            cohort=5,
            rounds=4,
            J="J2e",
            momentum=0.5,
            participation="dropout-0.3",
        )
        *_, state = Federated().rounds(replace(task, trainer=kind), Federated().begin(task))
        states.append(state)
    for name, tensor in states[0].weights.items():
        torch.testing.assert_close(states[1].weights[name], tensor, rtol=1e-9, atol=1e-12)
    losses = [[value for _, value in state.history.metrics["test_loss"]] for state in states]
    assert losses[1] == pytest.approx(losses[0], rel=1e-9) and len(set(losses[0])) == 4
