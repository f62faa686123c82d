"""Clients for which the global model's largest output is highest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.selection.selector import Selector, State, View


@dataclass(frozen=True, kw_only=True)
class Boldest(Selector):
    """Chooses by a need of one's own."""

    name: ClassVar[str] = "boldest"
    needs: ClassVar[frozenset[str]] = frozenset({"largest_output"})

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        largest = view.reports["largest_output"][candidates]
        return candidates[np.argsort(-largest, kind="stable")[: view.cohort]]
