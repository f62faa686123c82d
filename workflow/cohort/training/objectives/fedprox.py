"""FedProx: a proximal term keeps local models close to the global model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import parameter
from cohort.core.lazy import lazy
from cohort.training.objectives.cross_entropy import CrossEntropy
from cohort.training.objectives.objective import Coefficients

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy("torch")


@dataclass(frozen=True, kw_only=True)
class FedProx(CrossEntropy):
    """Cross-entropy plus mu / 2 times the squared distance of the parameters to the global ones."""

    name: ClassVar[str] = "fedprox"
    is_proximal: ClassVar[bool] = True
    mu: float = parameter(0.01, minimum=0, help="weight of the proximal term")

    def proximal_term(self, parameters: Iterable[Tensor], start: Iterable[Tensor]) -> Tensor:
        squares = [((now - then) ** 2).sum() for now, then in zip(parameters, start, strict=True)]
        return self.mu / 2 * torch.stack(squares).sum()

    def coefficients(self, statistics: Tensor) -> Coefficients | None:
        return Coefficients(mu=self.mu)
