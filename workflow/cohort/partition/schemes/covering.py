"""NIID-Bench's #C = k where clients are fewer than classes, and no class may go unheld (Stratify)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cohort.partition.schemes.classes import Classes


@dataclass(frozen=True, kw_only=True)
class Covering(Classes):
    """Client i holds the i-th block of classes, as long as it must be for the blocks to cover all of them, and others drawn at random until
    it has k; the samples of a class are split evenly among its holders.

    NIID-Bench's own rule starts from one class, so that ten clients of ten classes leave 35 of 100 classes unheld; accuracies as Stratify
    prints them need every class. Where there are as many clients as classes the block is one class, and this is `classes`.
    """

    name: ClassVar[str] = "covering"

    def check_cover(self, classes: int, clients: int) -> None:
        if clients * self.k < classes:
            raise ValueError(
                f"{clients} clients that hold {self.k} each cannot hold all {classes} classes"
            )

    def block(self, classes: int, clients: int) -> int:
        return -(-classes // clients)
