"""PECO's baseline FPS: overlapping clients take part with a fixed probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.selection.selector import Selector, State, View


@dataclass(frozen=True, kw_only=True)
class FixedProbability(Selector):
    """Every overlapping client, one that also holds samples of others, joins the cohort with a
    fixed probability, independently of the others; the remaining places are drawn uniformly from
    the regular clients.

    If more overlapping clients want to join than the cohort has places, as many of them are drawn.
    If regular clients are too few, the cohort is smaller, but it has at least one client. Without
    overlapping clients the cohort is uniform.
    """

    name: ClassVar[str] = "fixed-probability"
    needs: ClassVar[frozenset[str]] = frozenset({"overlap"})
    probability: float = parameter(
        0.5, minimum=0, maximum=1, help="of each overlapping client to be in a cohort"
    )

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        overlaps = view.reports["overlap"][candidates] == 1
        special, regular = candidates[overlaps], candidates[~overlaps]
        joining = special[rng.random(len(special)) < self.probability]
        if not len(joining) and not len(regular):
            joining = rng.choice(special, 1)
        if len(joining) > view.cohort:
            joining = rng.choice(joining, view.cohort, replace=False)
        regular_count = min(view.cohort - len(joining), len(regular))
        return np.concatenate([joining, rng.choice(regular, regular_count, replace=False)])
