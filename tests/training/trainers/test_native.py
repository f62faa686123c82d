"""The native trainer takes the serial one's steps, whatever they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Thread
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.native import network as native_network
from cohort.selection import SELECTORS, Selector
from cohort.training.evaluation import evaluate, fingerprint
from cohort.training.objectives import Objective
from cohort.training.objectives.cross_entropy import CrossEntropy
from cohort.training.objectives.fedprox import FedProx
from cohort.training.objectives.fedrs import FedRS
from cohort.training.servers import SERVERS, ServerRule
from cohort.training.state import RunState
from cohort.training.task import Task
from cohort.training.trainers import native
from cohort.training.trainers.native import NativeTrainer
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Updates
from tests.training.small_task import CLASSES, plain_samples, run, small_task, train, trainer_of
from tests.training.trainers.test_batched import OBJECTIVES, SIZES, assert_same

CPU = torch.device("cpu")


def network(name: str = "small-cnn", shape: tuple[int, int, int] = (3, 16, 16)) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return MODELS[name]().build(shape, CLASSES).double()


def photos(side: int = 16) -> Samples:
    """Random images of bytes, standardized by channel."""
    rng = np.random.default_rng(8)
    values = rng.integers(0, 256, (sum(SIZES), 3, side, side), dtype=np.uint8)
    mean, std = (torch.rand(3, 1, 1, dtype=torch.float64) + 0.2 for _ in range(2))
    labels = torch.from_numpy(rng.integers(0, CLASSES, sum(SIZES)))
    return Samples(torch.from_numpy(values), labels, 255.0, mean, std)


def photo_task(**parts: object) -> Task:
    usual = {"model": network(), "train": photos(), "sizes": SIZES, "J": "J2e", "batch": 4}
    return small_task(**(usual | parts))  # type: ignore[arg-type]


def both(task: Task, cohort: list[int], **changes: object) -> tuple[Updates, Updates]:
    weights = task.initial_weights()
    serial, native = (
        train(trainer_of(task, kind), weights, cohort, 3, **changes)
        for kind in (SerialTrainer, NativeTrainer)
    )
    assert (serial.distances(weights)[serial.steps > 0] > 1e-3).all()
    return serial, native


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: objective.name)
@pytest.mark.parametrize("batch", [1, 4])
def test_every_objective(objective: Objective, batch: int):
    options = {"momentum": 0.9, "weight_decay": 0.01, "clip": 0.2}
    task = photo_task(objective=objective, batch=batch, J="J3", **options)
    assert_same(*both(task, [10, 2, 7, 0, 4, 5]))


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32)])
def test_stratifys_cnn(shape: tuple[int, int, int], batch: int):
    rng = np.random.default_rng(9)
    values = torch.from_numpy(rng.normal(size=(sum(SIZES), *shape)))
    samples = plain_samples(values, torch.from_numpy(rng.integers(0, CLASSES, sum(SIZES))))
    model = network("stratify-cnn", shape)
    task = photo_task(model=model, train=samples, test=samples, batch=batch, J="J3")
    assert NativeTrainer.refusal(task) == ""
    assert_same(*both(task, [10, 2]))


@pytest.mark.parametrize("pull", [0.1, 0.5, 0.9999, 1.0, 1.5])
def test_single_samples_with_a_proximal_term_of_any_strength(pull: float):
    """lr mu is the share of the way to the anchor that a step goes. In float32, where a step that
    divides by 1 - lr mu would be wrong in the fourth digit near 1, and NaN at 1."""
    train = replace(photos(), mean=torch.full((3, 1, 1), 0.5), std=torch.full((3, 1, 1), 0.3))
    parts = {"train": train, "test": train, "model": network().float(), "J": "J2e"}
    serial, native = both(
        photo_task(objective=FedProx(mu=pull / 0.01), lr=0.01, batch=1, **parts), [10, 2]
    )
    for name, expected in serial.weights.items():
        error = torch.linalg.vector_norm(native.weights[name] - expected)
        assert error < 1e-6 * torch.linalg.vector_norm(expected), name
    torch.testing.assert_close(native.losses.float(), serial.losses, rtol=1e-5, atol=0)


@dataclass(frozen=True, kw_only=True)
class Smoothed(CrossEntropy):
    """An objective of one's own, without coefficients."""

    name: ClassVar[str] = "smoothed"

    def logits(self, outputs: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return 0.9 * outputs


@dataclass(frozen=True, kw_only=True)
class Doubled(FedRS):
    """Another one, that inherits coefficients that no longer hold."""

    name: ClassVar[str] = "doubled"

    def label_statistics(self, counts: Tensor) -> Tensor:
        return 2 * super().label_statistics(counts)


def test_what_it_refuses():
    def refusal(**parts: object) -> str:
        return NativeTrainer.refusal(photo_task(**parts))

    assert refusal() == ""
    assert "adam" in refusal(optimizer="adam")
    assert "smoothed" in refusal(objective=Smoothed())
    assert "doubled" in refusal(objective=Doubled(alpha=0.5))
    assert "Dropout" in refusal(model=nn.Sequential(network(), nn.Dropout(0.5)))
    assert "stride=(2, 2)" in refusal(model=nn.Sequential(nn.Conv2d(3, 2, 3, stride=2)))
    assert "precision" in refusal(model=network().to(torch.bfloat16))
    assert "linear layer" in refusal(model=nn.Sequential(nn.Conv2d(3, 3, 16), nn.Flatten()))


def test_a_processor_without_fused_multiply_add_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native_network, "has_fma", lambda: False)
    assert "fused multiply-add" in NativeTrainer.refusal(photo_task())


def test_parts_of_a_clients_work():
    """Probes take the first steps, stragglers stop early, quotas leave samples out, and SCAFFOLD
    corrects each step."""
    task = photo_task(momentum=0.5)
    weights = task.initial_weights()
    moves = {name: 0.1 * tensor for name, tensor in weights.items()}
    for changes in (
        {"end": 1},
        {"begin": 1, "end": 3},
        {"samples": np.array([5, 1, 9, 2, 7, 30])},
        {"samples": np.array([], dtype=np.int64)},
        {"correction": lambda: moves},
    ):
        serial, native = (
            train(trainer_of(task, kind), weights, [3, 9], 2, **changes)
            for kind in (SerialTrainer, NativeTrainer)
        )
        assert_same(serial, native)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("augmentation", sorted(set(AUGMENTATIONS) - {"none"}))
def test_augmentation(augmentation: str, batch: int):
    task = photo_task(augmentation=augmentation, batch=batch)
    trainer = trainer_of(task, NativeTrainer)
    assert isinstance(trainer, NativeTrainer) and trainer.network.augments
    assert_same(*both(task, [10, 2, 7]))


def test_augmentation_of_rows_shorter_than_a_vector():
    """PyTorch augments what native code cannot."""
    task = photo_task(model=network(shape=(3, 5, 5)), train=photos(5), augmentation="crop-flip")
    assert_same(*both(task, [10, 2]))


def test_other_samples():
    """Columns of a table, and numbers that are stored as they are."""
    rng = np.random.default_rng(1)
    table = Samples(
        torch.from_numpy(rng.normal(size=(sum(SIZES), 7))),
        torch.from_numpy(rng.integers(0, CLASSES, sum(SIZES))),
        2.0,
        torch.from_numpy(rng.normal(size=7)),
        torch.from_numpy(rng.uniform(0.5, 2, 7)),
    )
    mlp = MODELS["small-mlp"]().build((7,), CLASSES).double()
    assert_same(*both(photo_task(model=mlp, train=table), [10, 2]))
    plain = plain_samples(torch.rand(sum(SIZES), 3, 16, 16).double(), table.labels)
    assert_same(*both(photo_task(train=plain), [10, 2]))


@pytest.mark.parametrize("server", SERVERS.values(), ids=lambda server: server.name)
def test_every_server_rule(server: type[ServerRule]):
    assert_same_runs(server=server(), cohort=5)


@pytest.mark.parametrize("selector", SELECTORS.values(), ids=lambda selector: selector.name)
def test_every_selector(selector: type[Selector]):
    assert_same_runs(selector=selector(), cohort=4)


def test_fedconcat():
    """The clusters' networks, and the classifier on top of them."""
    assert_same_runs(procedure="concat-2", cohort=6, momentum=0.5)


def assert_same_runs(**parts: object) -> None:
    def runs(trainer: str) -> RunState:
        task = small_task(sizes=SIZES, rounds=3, J="J2e", **parts)  # type: ignore[arg-type]
        return run(replace(task, trainer=trainer))

    serial, native = runs("serial"), runs("native")
    assert [list(cohort) for cohort in native.history.cohorts] == [
        list(cohort) for cohort in serial.history.cohorts
    ]
    for name, tensor in serial.weights.items():
        torch.testing.assert_close(native.weights[name], tensor, rtol=1e-9, atol=1e-12)


def test_how_many_steps_a_call_takes_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    task = photo_task(momentum=0.9, augmentation="flip")
    weights, prints = task.initial_weights(), set()
    monkeypatch.setattr(native, "SECONDS", 0)
    for first in (1, 3, 1000):
        trainer = trainer_of(task, NativeTrainer)
        assert isinstance(trainer, NativeTrainer)
        trainer.steps_at_once = first
        updates = train(trainer, weights, [10, 2], 3)
        prints.add(fingerprint(updates.weights))
    assert len(prints) == 1


def test_two_threads_at_once():
    """Each thread trains and evaluates in memory of its own."""
    tasks = [photo_task(seed=seed) for seed in range(2)]
    actual: dict[int, list[tuple[str, float]]] = {0: [], 1: []}

    def work(number: int) -> None:
        task = tasks[number]
        trainer, weights = trainer_of(task, NativeTrainer), task.initial_weights()
        for _ in range(20):
            updates = train(trainer, weights, [10, 2], 3)
            model = updates.client_weights(0)
            loss = evaluate(task.model, model, task.train_samples, torch.arange(40)).loss
            actual[number].append((fingerprint(updates.weights), loss))

    threads = [Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(set(results)) for results in actual.values()] == [1, 1]
    assert [len(results) for results in actual.values()] == [20, 20]
    assert actual[0][0] != actual[1][0]


def test_it_has_the_same_coefficients_as_the_objectives_losses():
    """The coefficients of every objective give its losses."""
    outputs = torch.randn(9, CLASSES, dtype=torch.float64)
    targets, bias = torch.arange(9) % CLASSES, torch.randn(CLASSES, dtype=torch.float64)
    for objective in OBJECTIVES:
        statistics = objective.label_statistics(torch.tensor([4.0, 0.0, 5.0], dtype=torch.float64))
        actual = objective.coefficients(statistics)
        assert actual is not None
        scale = torch.ones(CLASSES).double() if actual.scale is None else actual.scale
        shift = torch.zeros(CLASSES).double() if actual.shift is None else actual.shift
        logits = scale * (outputs - bias) + bias + shift
        expected = objective.losses(outputs, targets, statistics, bias)
        plain = nn.functional.cross_entropy(logits, targets, reduction="none")
        torch.testing.assert_close(plain, expected, rtol=1e-12, atol=1e-12)
