"""The workloads: network, clients and local work of a round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cohort.cell.settings import local_work


@dataclass(frozen=True, kw_only=True)
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

    @property
    def samples(self) -> int:
        """Samples processed in a round, over all clients and steps."""
        orders = np.zeros((self.epochs, self.size), dtype=np.int8)
        return self.cohort * sum(len(batch) for batch in self.batches(orders))

    def tiny(self) -> Workload:
        """A small version that runs in a second, to check that the benchmark works."""
        amount, epochs = local_work(self.J)
        less = f"J{min(amount, 2)}{'e' if epochs else ''}"
        return replace(
            self,
            clients=4,
            cohort=2,
            size=min(self.size, 20),
            batch=min(self.batch, 8),
            J=less,
            rounds=3,
        )


# Learning rates are low so that rounding differences between variants stay small over a round.
W1 = Workload(
    name="W1",
    title="LeNet of the AML project",
    model="aml-lenet",
    shape=(3, 32, 32),
    classes=100,
    J="J4",
    rounds=7,
)
W2 = Workload(
    name="W2",
    title="LeNet-5, five epochs",
    model="lenet5",
    shape=(1, 32, 32),
    classes=10,
    J="J5e",
    lr=0.003,
    weight_decay=5e-4,
    rounds=9,
)
W2A = replace(
    W2,
    name="W2a",
    title="LeNet-5, five epochs of augmented images",
    shape=(3, 32, 32),
    augmentation="jitter-flip-gray",
    rounds=3,
)
W2B = replace(
    W2,
    name="W2b",
    title="LeNet-5, the benchmark of BlazeFL",
    shape=(3, 32, 32),
    cohort=100,
    batch=50,
    momentum=0.0,
    weight_decay=0.0,
    rounds=5,
)
W3 = Workload(
    name="W3",
    title="One sample per step",
    model="conv32-conv64",
    shape=(1, 28, 28),
    classes=10,
    J="J1e",
    clients=1,
    cohort=1,
    size=400,
    batch=1,
    lr=0.001,
    momentum=0.0,
    rounds=15,
)
W4 = replace(W1, name="W4", title="Evaluation of 10,000 samples", clients=20, rounds=6)
