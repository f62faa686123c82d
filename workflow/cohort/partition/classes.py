"""Every client holds a fixed number of classes (NIID-Bench's #C = k)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.components import parameter
from cohort.partition.scheme import Scheme


@dataclass(frozen=True, kw_only=True)
class Classes(Scheme):
    """Client i holds class i mod C and k-1 other classes drawn at random; the samples of a class are split evenly among its holders."""

    name: ClassVar[str] = "classes"
    k: int = parameter(minimum=1, help="classes per client")

    def check(self, classes: int, clients: int, samples: int) -> None:
        super().check(classes, clients, samples)
        if self.k > classes:
            raise ValueError(f"a client cannot hold {self.k} classes where there are only {classes}")
        if clients < classes:
            raise ValueError(f"{clients} clients leave some of the {classes} classes unheld (client i starts from class i mod {classes})")

    def deal(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        classes = int(labels.max()) + 1
        holders: list[list[int]] = [[] for _ in range(classes)]
        for client in range(clients):
            first = client % classes
            others = np.delete(np.arange(classes), first)
            for label in [first, *rng.choice(others, self.k - 1, replace=False)]:
                holders[label].append(client)
        parts: list[list[np.ndarray]] = [[] for _ in range(clients)]
        for label, clients_of_label in enumerate(holders):
            samples = rng.permutation(np.flatnonzero(labels == label))
            if len(samples) < len(clients_of_label):
                raise ValueError(f"class {label} has {len(samples)} samples for {len(clients_of_label)} clients that hold it")
            for client, part in zip(clients_of_label, np.array_split(samples, len(clients_of_label)), strict=True):
                parts[client].append(part)
        return [np.concatenate(part) for part in parts]
