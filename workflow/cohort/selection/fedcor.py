"""FedCor (Tang et al., CVPR 2022): clients whose losses are correlated with those of all."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.selection.selector import Reports, Rng, Selector, Skipping, State, View

NOISE = 0.01  # the standard deviation of a change of loss that no other client explains


@dataclass(frozen=True, kw_only=True)
class FedCor(Selector, Skipping):
    """Chooses, one after another, the clients whose loss is correlated most with the losses of all,
    given those that are chosen already.

    In the first rounds, and in every `interval`-th one after them, the cohort is random and all
    clients evaluate the global model before and after it. The changes of their losses are samples
    of a Gaussian process: each client is a point in `dimension` dimensions, and two clients
    covary by the product of their points, which are the most likely ones. (The authors' code
    approaches these with steps of Adam, and after the first rounds it trains random cohorts on a
    copy of the model only.)
    """

    name: ClassVar[str] = "fedcor"
    needs: ClassVar[frozenset[str]] = frozenset({"candidate_loss"})
    warmup: int = parameter(15, minimum=2, help="the number of first rounds")
    interval: int = parameter(
        10, minimum=2, help="rounds from one update of the process to the next"
    )
    dimension: int = parameter(15, minimum=1, help="the dimension of the points")
    annealing: float = parameter(
        0.95,
        exclusiveMinimum=0,
        maximum=1,
        help="beta: how much a client counts each time that it was chosen since the last update",
    )
    memory_decay: float = parameter(
        0.95, exclusiveMinimum=0, maximum=1, help="gamma: how much a sample counts each round later"
    )

    def begin(self, view: View, rng: Rng) -> State:
        return {
            "round": np.ones(1, dtype=np.int64),
            "losses": np.full(view.clients, np.nan),
            "changes": np.zeros((0, view.clients)),
            "ages": np.zeros(0, dtype=np.int64),
            "points": np.zeros((view.clients, self.dimension)),
            "chosen": np.zeros(view.clients, dtype=np.int64),
        }

    def asks(self, state: State, view: View) -> bool:
        return self._is_random(state) or self._is_random(state, earlier=1)

    def _is_random(self, state: State, earlier: int = 0) -> bool:
        """Whether the cohort of this round, or of the round `earlier` rounds before, is random."""
        later = int(state["round"][0]) - earlier - self.warmup
        return later <= 0 or later % self.interval == 0

    def select(self, state: State, candidates: np.ndarray, view: View, rng: Rng) -> np.ndarray:
        if self._is_random(state):
            return rng.choice(candidates, view.cohort, replace=False)
        state = self._with_newest_change(state, view)
        covariance = state["points"] @ state["points"].T + NOISE**2 * np.eye(view.clients)
        shares, weights = view.sizes / view.sizes.sum(), self.annealing ** state["chosen"]
        cohort: list[int] = []
        while len(cohort) < view.cohort:
            rest = np.setdiff1d(candidates, cohort)
            deviations = np.sqrt(np.diagonal(covariance)[rest])
            gains = weights[rest] * (shares @ covariance[:, rest]) / deviations
            client = rest[gains.argmax()]
            cohort.append(client)
            column = covariance[:, client]
            covariance = covariance - np.outer(column, column) / column[client]
        return np.array(cohort)

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        after = self._with_newest_change(state, view)
        after["chosen"][cohort] += not self._is_random(state)
        after["ages"] += 1
        after["losses"] = view.reports.get("candidate_loss", np.full(view.clients, np.nan))
        after["round"] = state["round"] + 1
        return after

    def _with_newest_change(self, state: State, view: View) -> State:
        """The state with the newest change of losses and refitted points, if the cohort before was
        random and the losses before and after it are known."""
        after = {name: array.copy() for name, array in state.items()}
        losses, random = view.reports.get("candidate_loss"), self._is_random(state, earlier=1)
        if losses is None or not random or np.isnan(state["losses"]).all():
            return after
        change = np.nan_to_num(losses - state["losses"])  # of clients without samples
        after["changes"] = np.vstack([state["changes"], change])
        after["ages"] = np.append(state["ages"], 0)
        weights = self.memory_decay ** after["ages"].astype(np.float64)
        after["points"] = likeliest_points(after["changes"], weights, self.dimension, NOISE)
        after["chosen"][:] = 0
        return after


def likeliest_points(
    samples: np.ndarray, weights: np.ndarray, dimension: int, noise: float
) -> np.ndarray:
    """The points (client, dimension) with which weighted samples (sample, client) are likeliest,
    if they vary about their mean with the products of points as covariance, and with this noise.

    They are the principal axes of the samples, as long as their deviations without the noise
    (Tipping and Bishop, 1999).
    """
    shares = weights / weights.sum()
    centered = (samples - shares @ samples) * np.sqrt(shares)[:, np.newaxis]
    _, deviations, axes = np.linalg.svd(centered, full_matrices=False)
    lengths = np.sqrt(np.maximum(deviations**2 - noise**2, 0))[:dimension]
    points = np.zeros((samples.shape[1], dimension))
    points[:, : len(lengths)] = axes[: len(lengths)].T * lengths
    return points
