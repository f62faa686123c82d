"""Metrics of a round about clients that overlap with others."""

from __future__ import annotations

import numpy as np

from cohort.core.metric import Metric

OVERLAP_METRICS = {
    "overlapping_chosen": Metric("Cohort that overlaps", "%", 100, digits=1),
    "overlapping_probability": Metric("Mass on overlapping clients", "%", 100),
    "overlapping_preference": Metric("Preference for overlapping", partial=True),
}


def cohort_overlap(is_overlapping: np.ndarray, cohort: np.ndarray) -> dict[str, float]:
    """The share of a cohort that overlaps with other clients, as a metric; empty if nobody does."""
    return (
        {"overlapping_chosen": float(is_overlapping[cohort].mean())} if is_overlapping.any() else {}
    )


def probability_overlap(
    is_overlapping: np.ndarray, pool: np.ndarray, probabilities: np.ndarray
) -> dict[str, float]:
    """Metrics of how a selector prefers overlapping clients: the probability that the first client
    drawn from a pool overlaps, and that of the mean overlapping client as a multiple of the mean
    regular client's; empty unless there are both."""
    among = is_overlapping[pool]
    if among.all() or not among.any():
        return {}
    regular = probabilities[~among].mean()
    preference = probabilities[among].mean() / regular if regular else np.inf
    return {
        "overlapping_probability": float(probabilities[among].sum()),
        "overlapping_preference": float(preference),
    }
