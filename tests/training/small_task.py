"""A small task in float64 on random or given data, without files, and how to train it."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cohort.data.samples import Samples
from cohort.data.shards import Shards
from cohort.models import MODELS
from cohort.selection import Selector
from cohort.selection.simple import Random
from cohort.settings import Settings
from cohort.training.cell import Cell
from cohort.training.objectives import CrossEntropy, Objective
from cohort.training.servers import Average, ServerRule
from cohort.training.task import RunState, Task
from cohort.training.trainers.trainer import Trainer
from cohort.training.updates import LocalWork, Updates, Weights

CLASSES = 3
SIZES = (4, 9, 2, 6)


def small_settings(**changes: Any) -> Settings:
    """The settings of a run without files."""
    names: dict[str, Any] = {"dataset": "none", "model": "small-mlp", "partition": "iid"}
    names |= {"strategy": "none", "precision": "float64"}
    numbers = {"J": "J1", "seed": 0, "clients": 3, "cohort": 3, "rounds": 1, "batch": 4, "lr": 0.1}
    return Settings(**(names | numbers | changes))


def small_cell(
    *,
    selector: Selector | None = None,
    objective: Objective | None = None,
    server: ServerRule | None = None,
    **settings: Any,
) -> Cell:
    """The cell of a run without files."""
    return Cell(
        settings=small_settings(**settings),
        selector=selector or Random(),
        objective=objective or CrossEntropy(),
        server=server or Average(),
    )


def plain_samples(images: Tensor, labels: Tensor) -> Samples:
    """Samples that are neither scaled nor standardized."""
    mean, std = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    return Samples(images, labels, 1.0, mean, std)


def random_samples(count: int, seed: int) -> Samples:
    """Noise of 8x8 pixels with random labels."""
    rng = np.random.default_rng(seed)
    images = torch.from_numpy(rng.normal(size=(count, 1, 8, 8)))
    return plain_samples(images, torch.from_numpy(rng.integers(0, CLASSES, count)))


def shards_of(labels: Tensor, sizes: tuple[int, ...], classes: int) -> Shards:
    """The samples in shuffled order, cut into these sizes."""
    order = np.random.default_rng(1).permutation(sum(sizes))
    parts = np.split(order, np.cumsum(sizes)[:-1])
    counts = [np.bincount(labels.numpy()[part], minlength=classes) for part in parts]
    return Shards(parts, np.stack(counts))


def small_model(name: str = "small-mlp", classes: int = CLASSES) -> nn.Module:
    """A network for 8x8 pixels in float64, always with the same weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        return MODELS[name]().build((1, 8, 8), classes).double()


def small_task(
    *,
    selector: Selector | None = None,
    objective: Objective | None = None,
    server: ServerRule | None = None,
    model: nn.Module | None = None,
    train: Samples | None = None,
    test: Samples | None = None,
    classes: int = CLASSES,
    sizes: tuple[int, ...] = SIZES,
    validation: tuple[int, ...] = (),
    **settings: Any,
) -> Task:
    """Four clients with unequal data, 20 test samples of which the first five are reserved."""
    torch.set_num_threads(1)  # as a job does
    train = train or random_samples(sum(sizes), 2)
    test = test or random_samples(20, 3)
    return Task(
        settings=small_settings(**({"clients": len(sizes), "cohort": len(sizes)} | settings)),
        selector=selector or Random(),
        objective=objective or CrossEntropy(),
        server=server or Average(),
        model=model or small_model(classes=classes),
        classes=classes,
        train_samples=train,
        test_samples=test,
        test=torch.arange(5, len(test.labels)),
        reserved=torch.arange(5),
        validation_samples=train,
        validation=torch.tensor(validation, dtype=torch.int64),
        shards=shards_of(train.labels, sizes, classes),
    )


def train(
    trainer: Trainer, weights: Weights, clients: Iterable[int], round: int = 1, **changes: Any
) -> Updates:
    """The updates of clients that start from the same weights. `changes` are fields of every client's `LocalWork`."""
    works = [replace(work, **changes) for work in trainer.full_work(weights, list(clients), round)]
    return trainer.train(works, weights)


def local_batches(task: Task, client: int, round: int) -> list[np.ndarray]:
    """The batches of a client's work in a round, as places in its shard."""
    samples = task.shards.indices[client]
    work = LocalWork(client=client, round=round, weights={}, samples=samples, lr=0.1)
    return [batch for _, batch in work.steps(task.settings)]


def run(task: Task) -> RunState:
    """The state after the last round of the task's procedure."""
    return states(task)[-1]


def states(task: Task) -> list[RunState]:
    """The state after each round of the task's procedure."""
    return list(task.procedure.rounds_of(task).run(task.procedure.begin(task)))


def seeded(seed: int, *layers: Callable[[], nn.Module]) -> nn.Sequential:
    """A network of these layers in float64, whose weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(*(layer() for layer in layers)).double()
