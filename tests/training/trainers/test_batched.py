"""The batched trainer gives what the serial one gives, for each client of a round."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.training.objectives import OBJECTIVES as CATALOG
from cohort.training.objectives import Objective
from cohort.training.objectives.cross_entropy import CrossEntropy
from cohort.training.objectives.fedlc import FedLC
from cohort.training.objectives.fedprox import FedProx
from cohort.training.objectives.fedrs import FedRS
from cohort.training.procedures import parse_procedure
from cohort.training.servers import ServerRule
from cohort.training.servers.average import Average
from cohort.training.servers.fednova import FedNova
from cohort.training.servers.scaffold import Scaffold
from cohort.training.task import Task
from cohort.training.trainers import TRAINERS, choose_trainer
from cohort.training.trainers.base import Trainer
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.trainers.stacked import StackedTrainer
from cohort.training.updates import Updates, Weights
from tests.training.small_task import (
    CLASSES,
    plain_samples,
    run,
    small_task,
    train,
    trainer_of,
)

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
)  # with batches of 4: epochs of one to four steps, and last batches of every size
OBJECTIVES = [CrossEntropy(), FedProx(mu=0.3), FedRS(alpha=0.5), FedLC(tau=0.7)]


def both(task: Task, cohort: list[int], **changes: Any) -> tuple[Updates, Updates]:
    """One round by each of the two trainers, in which every client with samples moves."""
    weights = task.initial_weights()
    results = [
        train(trainer_of(task, kind), weights, cohort, 3, **changes)
        for kind in (SerialTrainer, StackedTrainer)
    ]
    assert (results[0].distances(weights)[results[0].steps > 0] > 1e-3).all()
    return results[0], results[1]


def assert_same(serial: Updates, batched: Updates, rtol: float = 1e-10) -> None:
    assert serial.clients == batched.clients
    assert torch.equal(serial.steps, batched.steps) and torch.equal(serial.sizes, batched.sizes)
    torch.testing.assert_close(batched.losses, serial.losses, rtol=rtol, atol=0, equal_nan=True)
    for row in range(len(serial.clients)):
        for name, tensor in serial.client_weights(row).items():
            difference = (batched.weights[name][row] - tensor).norm() / tensor.norm()
            assert difference < rtol, (row, name, float(difference))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: objective.name)
@pytest.mark.parametrize("J", ["J1", "J3", "J2e"])
def test_every_objective_with_clients_of_unequal_size(objective: Objective, J: str):
    task = small_task(objective=objective, sizes=SIZES, J=J, momentum=0.9, weight_decay=0.01)
    assert_same(*both(task, [10, 2, 7, 0, 4, 5]))


def test_every_objective_of_the_catalog_is_tested():
    assert {type(objective) for objective in OBJECTIVES} == set(CATALOG.values())


def test_more_clients_than_heights_and_clients_without_samples():
    """With eleven clients the stack shrinks by two at a time; one client has no samples."""
    task = small_task(sizes=(*SIZES[:-1], 0), J="J2e", momentum=0.5)
    serial, batched = both(task, list(range(11)))
    assert_same(serial, batched)
    assert batched.steps[10] == 0 and batched.losses[10].isnan()


def test_samples_of_other_clients_do_not_matter():
    """Short batches are padded with a client's own samples: NaN in those of a client that is not
    asked reaches nobody."""
    task = small_task(sizes=SIZES, J="J2e")
    task.train_samples.values[0] = torch.nan
    owner = next(client for client, indices in enumerate(task.shards.indices) if 0 in indices)
    serial, batched = both(task, [client for client in range(len(SIZES)) if client != owner])
    assert_same(serial, batched)
    assert serial.losses.isfinite().all()


def test_clients_that_are_done_do_not_move():
    """Client 3 takes two steps and stays in the stack for a third, where its outputs overflow."""
    task = small_task(sizes=SIZES, J="J1e")
    task.train_samples.values[task.shards.indices[3]] *= 1e70
    serial, batched = both(task, list(range(len(SIZES))))
    assert_same(serial, batched)
    assert 1e120 < serial.client_weights(3)["1.weight"].abs().max() < torch.inf


def test_gradients_are_clipped_for_each_client():
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


def test_works_that_differ():
    """Some of the samples, a few of the steps, and corrections."""
    task = small_task(sizes=SIZES, J="J2e")
    weights = task.initial_weights()

    def correction(client: int) -> Weights:
        return {name: torch.full_like(tensor, 0.01 * client) for name, tensor in weights.items()}

    results = []
    for kind in (SerialTrainer, StackedTrainer):
        trainer = trainer_of(task, kind)
        one, five, eight = [
            replace(work, correction=partial(correction, work.client))
            for work in trainer.full_work(weights, [1, 5, 8], 3)
        ]
        works = [replace(one, samples=one.samples[:5]), replace(five, end=3), eight]
        results.append(trainer.train(works, weights))
    assert_same(*results)
    assert results[0].steps.tolist() == [4, 3, 4] and results[0].sizes.tolist() == [5, 13, 5]
    plain = train(trainer_of(task), weights, [1, 5, 8], 3)
    assert not torch.equal(plain.weights["1.weight"][2], results[0].weights["1.weight"][2])


@pytest.mark.parametrize("kind", [SerialTrainer, StackedTrainer])
@pytest.mark.parametrize("J", ["J5", "J2e"])
def test_work_in_two_parts(J: str, kind: type[Trainer]):
    """A probe of one batch and the steps after it are the batches of the whole. Without momentum
    they are also its steps."""
    task, clients = small_task(sizes=SIZES, J=J), [5, 2, 10, 7]
    weights, trainer = task.initial_weights(), trainer_of(task, kind)
    whole = train(trainer, weights, clients, 2)
    first = train(trainer, weights, clients, 2, end=1)
    assert first.steps.tolist() == [1, 1, 1, 1]
    works = [
        replace(work, begin=1, weights=first.client_weights(row))
        for row, work in enumerate(trainer.full_work(weights, clients, 2))
    ]
    second = trainer.train(works, weights)
    assert second.steps.tolist() == (whole.steps - 1).tolist()
    for name, rows in whole.weights.items():
        torch.testing.assert_close(second.weights[name], rows, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("J", ["J5", "J2e"])
def test_probed_clients(J: str):
    """Clients 10 and 5 of a pool continue from where their probes ended, with fresh momentum."""
    task, pool = small_task(sizes=SIZES, J=J, momentum=0.9), [5, 2, 10, 7]
    weights, updates = task.initial_weights(), []
    for kind in (SerialTrainer, StackedTrainer):
        trainer = trainer_of(task, kind)
        probes = train(trainer, weights, pool, 2, end=1)
        works = [
            replace(work, begin=1, weights=probes.client_weights(pool.index(work.client)))
            for work in trainer.full_work(weights, [10, 5], 2)
        ]
        updates.append((probes, trainer.train(works, weights)))
    (first, serial), (second, batched) = updates
    assert_same(first, second)
    assert_same(serial, batched)
    assert (serial.distances(weights) > first.distances(weights)[[2, 0]]).all()


def float32_errors(kind: type[Trainer], sizes: tuple[int, ...]) -> np.ndarray:
    """Root mean square of what float32 changes in a round's weights at lr 0.5, for 20 seeds."""
    results = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        images = torch.from_numpy(rng.normal(size=(sum(sizes), 1, 28, 28)).astype(np.float32))
        labels = torch.from_numpy(rng.integers(0, 10, sum(sizes)))
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10))
        trained = []
        for trainer, precision in ((SerialTrainer, "float64"), (kind, "float32")):
            dtype = getattr(torch, precision)
            task = small_task(
                model=deepcopy(model).to(dtype),
                train=Samples(
                    images.to(dtype),
                    labels,
                    1.0,
                    torch.zeros(1, dtype=dtype),
                    torch.ones(1, dtype=dtype),
                ),
                classes=10,
                sizes=sizes,
                **{"lr": 0.5, "J": "J1", "batch": 32, "precision": precision},
            )
            weights = task.initial_weights()
            trained.append(train(trainer_of(task, trainer), weights, range(len(sizes))).weights)
        apart = [(tensor - trained[1][name]).flatten() for name, tensor in trained[0].items()]
        results.append(float(torch.cat(apart).square().mean().sqrt()))
    return np.array(results)


def test_rounding_errors_are_those_of_the_serial_trainer_where_batches_are_full():
    """A short batch is padded, and then multiplied by the kernel for full ones, which adds up more
    terms one after another than that for few rows: its errors may be up to twice as large."""
    for sizes, most in (((64, 64, 64, 64), 1.02), ((33, 1, 2, 3), 2.0)):
        serial, batched = (float32_errors(kind, sizes) for kind in (SerialTrainer, StackedTrainer))
        assert np.median(batched) <= most * np.median(serial), sizes


@pytest.mark.parametrize(
    "name", ["lenet5", "aml-lenet", pytest.param("vgg11", marks=pytest.mark.long)]
)
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


def test_one_trainer_serves_rounds_and_cohorts_of_any_size():
    task = small_task(sizes=SIZES, J="J2e", momentum=0.9)
    weights, lasting = task.initial_weights(), trainer_of(task, StackedTrainer)
    for round, cohort in enumerate([[3, 5], [9, 0, 1, 6, 10, 2], [7], [0, 1, 2]], start=1):
        serial = train(trainer_of(task), weights, cohort, round)
        assert_same(serial, train(lasting, weights, cohort, round))


def refusal(name: str | nn.Module, **settings: Any) -> str:
    network = MODELS[name]().build((3, 32, 32), 10) if isinstance(name, str) else name
    return StackedTrainer.refusal(small_task(model=network, **settings))


def test_networks_and_settings_that_it_refuses():
    assert not any(map(refusal, ("small-mlp", "small-cnn", "lenet5", "vgg11")))
    assert "BatchNorm2d" in refusal("vgg11-bn")
    assert "LSTM" in refusal(MODELS["char-lstm"]().build((20,), 30))
    assert "Dropout" in refusal(nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 3)))
    assert "adam" in refusal("lenet5", optimizer="adam")


GPU, CPU = torch.device("cuda"), torch.device("cpu")


def color_task(model: str, **settings: Any) -> Task:
    values = torch.zeros(21, 3, 32, 32)
    samples = plain_samples(values, torch.arange(21) % 3)
    return small_task(
        model=MODELS[model]().build((3, 32, 32), 3), train=samples, test=samples, **settings
    )


@pytest.mark.parametrize(
    ("wish", "device", "model", "chosen", "reason"),
    [
        ("auto", GPU, "lenet5", "batched", ""),
        ("auto", GPU, "vgg11-bn", "serial", "BatchNorm2d cannot be batched over clients"),
        ("auto", CPU, "lenet5", "native", ""),
        ("auto", CPU, "vgg11-bn", "serial", "no native code for BatchNorm2d"),
        ("batched", CPU, "lenet5", "batched", ""),
        ("native", CPU, "lenet5", "native", ""),
        ("serial", GPU, "lenet5", "serial", ""),
    ],
)
def test_which_trainer_is_chosen(
    wish: str, device: torch.device, model: str, chosen: str, reason: str
):
    assert choose_trainer(wish, device, color_task(model)) == (chosen, reason)


@pytest.mark.parametrize("wish", ["auto", "native", "batched", "serial"])
def test_not_every_procedure_allows_every_trainer(wish: str):
    central, concat = (color_task("lenet5", procedure=name) for name in ("centralized", "concat-2"))
    for device in (GPU, CPU):
        assert choose_trainer(wish, device, central)[0] == "serial"
        is_native = wish == "native" or (wish == "auto" and device == CPU)
        assert choose_trainer(wish, device, concat)[0] == ("native" if is_native else "serial")
        profiled = color_task("lenet5", procedure="federated-profiled1")
        assert choose_trainer(wish, device, profiled)[0] == "serial"
    assert parse_procedure("federated").usable_trainers() == tuple(TRAINERS)


@pytest.mark.parametrize(
    "server", [Average(), Scaffold(), FedNova()], ids=lambda server: server.name
)
def test_whole_runs(server: ServerRule):
    """Four rounds with selection, dropout of clients and evaluation."""
    settings = {"cohort": 5, "rounds": 4, "J": "J2e", "momentum": 0.5}
    states = []
    for kind in ("serial", "batched", "native"):
        task = small_task(server=server, sizes=SIZES, participation="dropout-0.3", **settings)
        states.append(run(replace(task, trainer=kind)))
    serial, *others = states
    losses, *of_others = (
        [value for _, value in state.history.metrics["test_loss"]] for state in states
    )
    assert len(set(losses)) == 4
    for other, of_other in zip(others, of_others, strict=True):
        for name, tensor in serial.weights.items():
            torch.testing.assert_close(other.weights[name], tensor, rtol=1e-9, atol=1e-12)
        assert of_other == pytest.approx(losses, rel=1e-9)
