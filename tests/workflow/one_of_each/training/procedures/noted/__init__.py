"""Federated learning that notes the parity of its rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cohort.core.metric import Metric
from cohort.training.procedures.federated import Federated


@dataclass(frozen=True, kw_only=True)
class Noted(Federated):
    """Records 1 in odd rounds."""

    name: ClassVar[str] = "noted"
    metrics: ClassVar[Mapping[str, Metric]] = {"parity": Metric("Parity of the round")}
