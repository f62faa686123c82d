"""The workloads: network, clients and local work of a round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cohort.settings import local_work


@dataclass(frozen=True)
class Workload:
    """Federated training with `clients` clients of `size` samples, `cohort` of them per round."""

    name: str
    title: str
    model: str
    shape: tuple[int, ...]
    classes: int
    J: str
    clients: int = 100
    size: int = 500
    cohort: int = 10
    batch: int = 64
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.0
    augmentation: str = "none"
    rounds: int = 10

    @property
    def steps(self) -> int:
        """Local steps per client and round."""
        amount, epochs = local_work(self.J)
        return amount * self.per_epoch if epochs else amount

    @property
    def per_epoch(self) -> int:
        """Batches per epoch, including a smaller last one."""
        return -(-self.size // self.batch)

    @property
    def epochs(self) -> int:
        """Epochs that a client starts in a round; the last may be incomplete."""
        return -(-self.steps // self.per_epoch)

    def batches(self, orders: np.ndarray) -> Iterator[np.ndarray]:
        """A client's batches in a round, given the order of its samples in each epoch."""
        for step in range(self.steps):
            epoch, step_of_epoch = divmod(step, self.per_epoch)
            yield orders[epoch, step_of_epoch * self.batch : (step_of_epoch + 1) * self.batch]

    def tiny(self) -> Workload:
        """A small version that runs in a second, to check that the benchmark works."""
        amount, epochs = local_work(self.J)
        less = f"J{min(amount, 2)}{'e' if epochs else ''}"
        size, batch = min(self.size, 20), min(self.batch, 8)
        return replace(self, clients=4, cohort=2, size=size, batch=batch, J=less, rounds=3)


# Learning rates are low so that rounding differences between variants stay small over a round.
RGB = (3, 32, 32)
W1 = Workload("W1", "LeNet of the AML project", "aml-lenet", RGB, 100, "J4", rounds=7)
W2 = Workload("W2", "LeNet-5, five epochs", "lenet5", (1, 32, 32), 10, "J5e", rounds=9)
W2 = replace(W2, lr=0.003, weight_decay=5e-4)
W2A = replace(W2, name="W2a", title="LeNet-5, five epochs of augmented images", rounds=3)
W2A = replace(W2A, shape=RGB, augmentation="jitter-flip-gray")
W2B = replace(W2, name="W2b", title="LeNet-5, the benchmark of BlazeFL", shape=RGB, rounds=5)
W2B = replace(W2B, cohort=100, batch=50, momentum=0.0, weight_decay=0.0)
W3 = Workload("W3", "One sample per step", "conv32-conv64", (1, 28, 28), 10, "J1e", rounds=15)
W3 = replace(W3, clients=1, cohort=1, size=400, batch=1, lr=0.001, momentum=0.0)
