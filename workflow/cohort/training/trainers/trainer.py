"""The base of all trainers: local work in, stacked updates out. Which samples make which step is
decided by the local work itself, so trainers do the same steps and differ in rounding only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cohort.core.randomness import generator
from cohort.data.augmentations import AUGMENTATIONS
from cohort.training import ledger
from cohort.training.updates import LocalWork, Updates, Weights, Works, local_steps

if TYPE_CHECKING:
    from cohort.training.task import Task


class Trained(NamedTuple):
    """The result of local training, client by client: stacked weights, mean losses and steps."""

    weights: Weights
    losses: Tensor
    steps: list[int]


class Trainer:
    """Does the local work of a task's clients."""

    name: ClassVar[str]

    def __init__(self, task: Task):
        self.model, self.settings = task.model, task.settings
        self.objective, self.samples = task.objective, task.train_samples
        self.shards = task.shards.indices
        self.augmentation = AUGMENTATIONS[self.settings.augmentation]()
        self.prepare()

    def prepare(self) -> None:
        """Set up what the trainer needs besides its network, settings and data."""

    @classmethod
    def unsupported_reason(cls, task: Task) -> str:
        """The reason why this trainer cannot do the local work of a task; empty if it can."""
        return ""

    def lr(self, round: int) -> float:
        """The clients' learning rate in a round."""
        return self.settings.lr * self.settings.lr_decay ** (round - 1)

    def full_work(self, weights: Weights, clients: Sequence[int] | np.ndarray, round: int) -> Works:
        """The work of clients that start from the same weights and do all of J on all samples."""
        work = partial(LocalWork, round=round, weights=weights, lr=self.lr(round))
        return [work(client=int(client), samples=self.shards[client]) for client in clients]

    def train(self, works: Works, anchor: Weights, cursor: ledger.Cursor | None = None) -> Updates:
        """Do the work of each client; the order does not matter. `anchor` are the global weights,
        to which a proximal term pulls. A client without samples takes no step, and its loss is NaN.
        `cursor` says which clients were done before the run was interrupted."""
        trained = self._train(works, anchor, cursor or ledger.Cursor())
        sizes = [len(work.samples) for work in works]
        return Updates(
            trained.weights,
            torch.tensor(sizes, dtype=torch.float64, device=self.samples.labels.device),
            torch.tensor(trained.steps),
            trained.losses,
            clients=tuple(work.client for work in works),
            total=len(self.shards),
            samples=sum(map(len, self.shards)),
            lr=works[0].lr,
            momentum=self.settings.momentum,
        )

    def _train(self, works: Works, anchor: Weights, cursor: ledger.Cursor) -> Trained:
        """Train one client after another, from the first that is not done."""
        stacked, losses, steps = self.empty_rows(len(works)), list[Tensor](), list[int]()
        if done := cursor.begin_call():
            losses, steps = list(done["losses"]), done["steps"].tolist()
            for name, rows in stacked.items():
                rows[: len(steps)] = done[f"weights/{name}"]

        def results() -> Weights:
            count = len(steps)  # a signal may have come before the step count of the last client
            done = {f"weights/{name}": rows[:count] for name, rows in stacked.items()}
            return done | {"losses": torch.stack(losses[:count]), "steps": torch.tensor(steps)}

        for row, work in enumerate(works[len(steps) :], start=len(steps)):
            step_losses = self.train_client(work, anchor, stacked, row)
            losses.append(step_losses.mean())
            steps.append(len(step_losses))
            cursor.client_done(results)
        return Trained(stacked, torch.stack(losses), steps)

    def empty_rows(self, count: int) -> Weights:
        """Uninitialized weights of so many clients, one row each."""
        raise NotImplementedError

    def train_client(self, work: LocalWork, anchor: Weights, stacked: Weights, row: int) -> Tensor:
        """Do one client's work: return the loss of each step, and write its weights to a row."""
        raise NotImplementedError

    def augmentation_draws(self, size: int, client: int, round: int) -> np.ndarray:
        """The random numbers that augment each of a client's samples in each epoch of a round."""
        steps, per_epoch = local_steps(size, self.settings)
        shape = (-(-steps // per_epoch), size, self.augmentation.numbers)
        if not self.augmentation.numbers:
            return np.empty(shape)
        rng = generator(self.settings.seed, "augmentation", round=round, client=client)
        return rng.random(shape)
