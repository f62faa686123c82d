"""Clients with a fixed number of classes each (NIID-Bench's #C = k)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.partition.scheme import Parts, Pool, Scheme


@dataclass(frozen=True, kw_only=True)
class Classes(Scheme):
    """Client i holds class i mod C and k-1 others drawn at random. The samples of a class are split
    evenly among its holders."""

    name: ClassVar[str] = "classes"
    k: int = parameter(minimum=1, help="classes per client")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        super().check(classes, clients, samples)
        if self.k > classes:
            raise ValueError(
                f"a client cannot hold {self.k} classes where there are only {classes}"
            )
        self.check_every_class_held(classes, clients)
        if clients * self.k > samples:
            raise ValueError(
                f"{clients} clients that hold {self.k} classes each need {clients * self.k} "
                f"samples at least, and there are {samples}"
            )

    def check_every_class_held(self, classes: int, clients: int) -> None:
        """Raise ValueError if there are fewer clients than classes, so that some class has no
        holder."""
        if clients < classes:
            raise ValueError(
                f"{clients} clients leave some of the {classes} classes unheld "
                f"(client i starts from class i mod {classes})"
            )

    def assigned_classes(self, classes: int, clients: int) -> int:
        """The number of a client's classes that are assigned rather than drawn."""
        return 1

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        classes = int(pool.labels.max()) + 1
        parts: list[Parts] = [[] for _ in range(clients)]
        holders_of = draw_holders(
            classes, clients, self.k, self.assigned_classes(classes, clients), rng
        )
        for label, holding in enumerate(holders_of):
            samples = rng.permutation(np.flatnonzero(pool.labels == label))
            if len(samples) < len(holding):
                raise ValueError(
                    f"class {label} has {len(samples)} samples for {len(holding)} clients "
                    "that hold it"
                )
            for client, part in zip(holding, np.array_split(samples, len(holding)), strict=True):
                parts[client].append(part)
        return [np.concatenate(part) for part in parts]


def draw_holders(
    categories: int, clients: int, most: int, block: int, rng: np.random.Generator
) -> list[list[int]]:
    """Draw the clients that hold each category (class or domain).

    Each client holds `most` of them: client i the `block` consecutive ones from i * block on,
    modulo their number, and others drawn at random.
    """
    holders_of: list[list[int]] = [[] for _ in range(categories)]
    for client in range(clients):
        first = (client * block + np.arange(block)) % categories
        rest = np.delete(np.arange(categories), first)
        for category in [*first, *rng.choice(rest, most - block, replace=False)]:
            holders_of[category].append(client)
    return holders_of
