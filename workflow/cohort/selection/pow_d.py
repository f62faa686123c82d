"""Power-of-choice (Cho et al., AISTATS 2022): of d clients, those with the highest loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.selection.abilities import Screening
from cohort.selection.draws import draw_without_replacement, pool_size, top_clients
from cohort.selection.selector import Selector, State, View


@dataclass(frozen=True, kw_only=True)
class PowD(Selector, Screening):
    """Draws d clients with probabilities proportional to their numbers of samples, has each of them
    evaluate the global model on its own samples, and chooses those with the highest loss (section
    4).

    With as many clients in the pool as in the cohort it chooses at random, with all clients it is
    the most biased. Ties are broken at random.
    """

    name: ClassVar[str] = "pow-d"
    needs: ClassVar[frozenset[str]] = frozenset({"candidate_loss"})
    pool: float = parameter(
        2.0, minimum=1, help="d: the number of clients drawn, as a multiple of the cohort"
    )

    def pool_size(self, clients: int, cohort: int) -> int:
        return pool_size(self.pool, clients, cohort)

    def draw_pool(self, candidates: np.ndarray, view: View, rng: np.random.Generator) -> np.ndarray:
        return candidates[
            draw_by_size(candidates, view, self.pool_size(len(candidates), view.cohort), rng)
        ]

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        (need,) = self.needs
        return top_clients(view.reports[need][candidates], candidates, view.cohort, rng)


def draw_by_size(
    candidates: np.ndarray, view: View, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw the positions of `count` candidates, in proportion to their numbers of samples. Those
    without samples are drawn last, and only if the cohort would be too small without them."""
    sizes = view.sizes[candidates]
    with np.errstate(divide="ignore"):
        drawn = draw_without_replacement(np.log(sizes), count, rng)
    return drawn[: max(view.cohort, np.count_nonzero(sizes))]
