"""FedProx: local models that do not go far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import parameter
from cohort.training.objectives.cross_entropy import CrossEntropy

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class FedProx(CrossEntropy):
    """Cross-entropy and mu / 2 times the squared distance to the global weights (trainable parameters only)."""

    name: ClassVar[str] = "fedprox"
    is_proximal: ClassVar[bool] = True
    mu: float = parameter(0.01, minimum=0, help="how strongly it is pulled back")

    def proximal_term(self, parameters: Iterable[Tensor], start: Iterable[Tensor]) -> Tensor:
        import torch

        squares = [((now - then) ** 2).sum() for now, then in zip(parameters, start, strict=True)]
        return self.mu / 2 * torch.stack(squares).sum()
