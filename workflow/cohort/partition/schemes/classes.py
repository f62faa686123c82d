"""Every client holds a fixed number of classes (NIID-Bench's #C = k)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.partition.scheme import Parts, Pool, Scheme


@dataclass(frozen=True, kw_only=True)
class Classes(Scheme):
    """Client i holds class i mod C and k-1 other classes drawn at random; the samples of a class are split evenly among its holders."""

    name: ClassVar[str] = "classes"
    k: int = parameter(minimum=1, help="classes per client")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        super().check(classes, clients, samples)
        if self.k > classes:
            raise ValueError(
                f"a client cannot hold {self.k} classes where there are only {classes}"
            )
        self.check_cover(classes, clients)

    def check_cover(self, classes: int, clients: int) -> None:
        """Raise ValueError when some class would be held by nobody."""
        if clients < classes:
            raise ValueError(
                f"{clients} clients leave some of the {classes} classes unheld (client i starts from class i mod {classes})"
            )

    def block(self, classes: int, clients: int) -> int:
        """How many of a client's classes are not drawn."""
        return 1

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        classes = int(pool.labels.max()) + 1
        parts: list[Parts] = [[] for _ in range(clients)]
        for label, clients_of_label in enumerate(
            holders(classes, clients, self.k, self.block(classes, clients), rng)
        ):
            samples = rng.permutation(np.flatnonzero(pool.labels == label))
            if len(samples) < len(clients_of_label):
                raise ValueError(
                    f"class {label} has {len(samples)} samples for {len(clients_of_label)} clients that hold it"
                )
            for client, part in zip(
                clients_of_label, np.array_split(samples, len(clients_of_label)), strict=True
            ):
                parts[client].append(part)
        return [np.concatenate(part) for part in parts]


def holders(
    places: int, clients: int, each: int, block: int, rng: np.random.Generator
) -> list[list[int]]:
    """Who holds each of the places (classes, domains): client i has the block from place i times its length on, going around, and others
    drawn at random until it has `each`."""
    found: list[list[int]] = [[] for _ in range(places)]
    for client in range(clients):
        first = (client * block + np.arange(block)) % places
        others = np.delete(np.arange(places), first)
        for place in [*first, *rng.choice(others, each - block, replace=False)]:
            found[place].append(client)
    return found
