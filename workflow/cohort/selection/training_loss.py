"""A reading of PECO's loss-based baseline: clients with the highest training loss train next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cohort.selection.loss import HighestLoss


@dataclass(frozen=True, kw_only=True)
class HighestTrainingLoss(HighestLoss):
    """Chooses the candidates that reported the highest mean loss of their local steps when they
    last trained. Clients that never trained come first, those without samples last; ties are broken
    at random."""

    name: ClassVar[str] = "training-loss"
    needs: ClassVar[frozenset[str]] = frozenset({"training_loss"})
