"""Power-of-choice with cheap evaluations: the loss on one batch of each client's samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cohort.selection.pow_d import PowD


@dataclass(frozen=True, kw_only=True)
class CpowD(PowD):
    """Like `pow-d`, but the clients of the pool evaluate the global model on one batch of their own
    samples only (cpow-d in section 4)."""

    name: ClassVar[str] = "cpow-d"
    needs: ClassVar[frozenset[str]] = frozenset({"candidate_batch_loss"})
