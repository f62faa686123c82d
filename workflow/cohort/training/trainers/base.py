"""What a trainer is: a cohort's local work in a round, from the global weights to the updates. Which samples make which step is decided
here, so that all trainers do the same work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from cohort.cell.settings import Settings, local_work
from cohort.core.randomness import generator
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.samples import Samples
from cohort.training.evaluation import evaluate
from cohort.training.objectives import Objective
from cohort.training.updates import Updates, Weights


@dataclass(frozen=True)
class Probed:
    """The clients that were probed, what became of them, and in how many batches."""

    pool: np.ndarray
    updates: Updates
    batches: int

    def of(self, client: int) -> Weights:
        """A client's model after its probe."""
        return self.updates.of_client(int(np.flatnonzero(self.pool == client)[0]))


@dataclass(frozen=True)
class Orders:
    """What a round asks of some clients that differs from all their data and all of J: on which samples one trains, after how many of its
    steps it stops, and what is added to its weights after each step, times the learning rate."""

    samples: Mapping[int, np.ndarray] = field(default_factory=dict)
    steps: Mapping[int, int] = field(default_factory=dict)
    drift: Callable[[int], Weights] = field(default=lambda client: {})


@dataclass(frozen=True)
class Work:
    """A round's work for some clients: from which weights, on which samples each, at which learning rate, and what differs from J."""

    weights: Weights
    clients: list[int]
    shards: list[np.ndarray]
    round: int
    lr: float
    orders: Orders
    probed: Probed | None

    def start(self, client: int) -> Weights:
        """With what a client begins: the weights of all, or where its probe ended."""
        return self.weights if self.probed is None else self.probed.of(client)


class Trainer:
    """Trains a cohort, each client on its own samples."""

    name: ClassVar[str]

    def __init__(
        self,
        model: nn.Module,
        settings: Settings,
        objective: Objective,
        samples: Samples,
        shards: list[np.ndarray],
    ):
        self.model, self.settings, self.objective, self.samples, self.shards = (
            model,
            settings,
            objective,
            samples,
            shards,
        )
        self.augmentation = AUGMENTATIONS[settings.augmentation]()

    @classmethod
    def fits(cls, model: nn.Module, settings: Settings) -> bool:
        """Whether it can train this network so."""
        return True

    def train(
        self,
        weights: Weights,
        cohort: np.ndarray,
        round: int,
        probed: Probed | None = None,
        orders: Orders | None = None,
    ) -> Updates:
        """Every client of the cohort starts from `weights`, or where its probe ended; the order in which they are trained does not matter.
        A client without samples takes no step and has no loss (NaN)."""
        return self._updates(weights, cohort, round, orders or Orders(), probed)

    def probe(self, weights: Weights, pool: np.ndarray, round: int, batches: int) -> Probed:
        """What becomes of each client of the pool in its first local batches of the round."""
        orders = Orders(steps=dict.fromkeys(pool.tolist(), batches))
        return Probed(pool, self._updates(weights, pool, round, orders, None), batches)

    def losses(self, updates: Updates, samples: Samples, indices: Tensor) -> np.ndarray:
        """The mean loss of each client's model on the samples with these indices."""
        return np.array(
            [
                evaluate(self.model, updates.of_client(row), samples, indices).loss
                for row in range(len(updates.sizes))
            ]
        )

    def _updates(
        self,
        weights: Weights,
        clients: np.ndarray,
        round: int,
        orders: Orders,
        probed: Probed | None,
    ) -> Updates:
        asked = clients.tolist()
        shards = [orders.samples.get(client, self.shards[client]) for client in asked]
        lr = self.settings.lr * self.settings.lr_decay ** (round - 1)
        models, losses, steps = self._trained(
            Work(weights, asked, shards, round, lr, orders, probed)
        )
        sizes = torch.tensor(
            [len(indices) for indices in shards],
            dtype=torch.float64,
            device=self.samples.labels.device,
        )
        return Updates(
            models,
            sizes,
            torch.tensor(steps),
            losses,
            tuple(asked),
            len(self.shards),
            lr,
            self.settings.momentum,
        )

    def _trained(self, work: Work) -> tuple[Weights, Tensor, list[int]]:
        """The clients' models, stacked, their mean losses, and how many steps each took on its samples."""
        raise NotImplementedError

    def first_step(self, size: int, probed: Probed | None) -> int:
        """The step with which a client goes on: after its probe, or, where J counts epochs, with the second of them."""
        if probed is None:
            return 0
        return (
            local_steps(size, self.settings)[1]
            if local_work(self.settings.J)[1]
            else probed.batches
        )

    def augmentation_numbers(self, size: int, client: int, round: int) -> np.ndarray:
        """The random numbers of each of a client's samples in each epoch."""
        steps, per_epoch = local_steps(size, self.settings)
        rng = generator(self.settings.seed, "augmentation", round=round, client=client)
        return rng.random((-(-steps // per_epoch), size, self.augmentation.numbers))

    def batch_order(self, client: int, round: int) -> np.random.Generator:
        """What shuffles a client's samples."""
        return generator(self.settings.seed, "batches", round=round, client=client)


def local_steps(size: int, settings: Settings) -> tuple[int, int]:
    """How many steps J asks for, and how many of them are one epoch."""
    amount, epochs = local_work(settings.J)
    per_epoch = -(-size // settings.batch)
    return amount * per_epoch if epochs else amount, per_epoch


def batches(size: int, settings: Settings, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The local batches of J: whole epochs, or so many steps through epoch after epoch, each newly shuffled."""
    steps, per_epoch = local_steps(size, settings)
    for step in range(steps):
        position = step % per_epoch
        if position == 0:
            order = rng.permutation(size)
        yield order[position * settings.batch : (position + 1) * settings.batch]
