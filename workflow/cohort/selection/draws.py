"""Steps that several selectors share: leaving out empty clients, random draws, rankings."""

import numpy as np

from cohort.selection.selector import Rng, View


def leave_out_empty(candidates: np.ndarray, view: View) -> np.ndarray:
    """The candidates that have samples. If these are fewer than a cohort, candidates without
    samples follow until there is one."""
    is_empty = view.sizes[candidates] == 0
    count = max(view.cohort, np.count_nonzero(~is_empty))
    return candidates[np.argsort(is_empty, kind="stable")[:count]]


def pool_size(multiple: float, clients: int, cohort: int) -> int:
    """Size of a pool that is a multiple of the cohort, as far as there are clients."""
    return min(round(multiple * cohort), clients)


def draw_without_replacement(log_weights: np.ndarray, count: int, rng: Rng) -> np.ndarray:
    """Draw `count` positions one after another, each with a probability proportional to its weight
    among the positions that are left.

    The largest weights perturbed by Gumbel noise are such a draw (Gumbel top-k), also of weights so
    small that only their logarithms are numbers.
    """
    return np.argsort(-(log_weights + rng.gumbel(size=len(log_weights))))[:count]


def top_clients(values: np.ndarray, clients: np.ndarray, count: int, rng: Rng) -> np.ndarray:
    """The `count` clients with the highest values, of which there is one for each client; ties are
    broken at random, and NaN comes last."""
    order = rng.permutation(len(clients))
    ranked = np.nan_to_num(values, nan=-np.inf)[order]
    return clients[order[np.argsort(-ranked, kind="stable")[:count]]]
