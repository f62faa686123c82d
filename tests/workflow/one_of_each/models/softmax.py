"""Softmax regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.lazy import lazy
from cohort.models import Model, Shape

if TYPE_CHECKING:
    from torch import nn
else:
    nn = lazy("torch.nn")


@dataclass(frozen=True, kw_only=True)
class Softmax(Model):
    """One linear layer."""

    name: ClassVar[str] = "softmax"

    def build(self, shape: Shape, classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), classes))
