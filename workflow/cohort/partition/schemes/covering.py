"""NIID-Bench's #C = k for fewer clients than classes, with no class left unheld (Stratify)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cohort.partition.schemes.classes import Classes


@dataclass(frozen=True, kw_only=True)
class Covering(Classes):
    """Client i holds the i-th block of classes and others drawn at random, k in all. Blocks are
    just long enough to cover all classes, whose samples are split evenly among their holders.

    NIID-Bench assigns one class per client, which leaves about 35 of 100 classes unheld by ten
    clients of ten classes; the accuracies that Stratify prints need every class. With as many
    clients as classes a block is one class, and this is `classes`.
    """

    name: ClassVar[str] = "covering"

    def check_every_class_held(self, classes: int, clients: int) -> None:
        """Raise ValueError if the clients, with k classes each, cannot hold every class."""
        if clients * self.k < classes:
            raise ValueError(
                f"{clients} clients that hold {self.k} each cannot hold all {classes} classes"
            )

    def assigned_classes(self, classes: int, clients: int) -> int:
        return -(-classes // clients)
