"""Choosing a cohort, in every procedure that has a selector, and the metrics of the choice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cohort.core.randomness import generator
from cohort.selection.selector import State, View
from cohort.training.contract.checked_selector import CheckedSelector
from cohort.training.ledger import Ledger
from cohort.training.procedures.federated.overlap_metrics import cohort_overlap, probability_overlap
from cohort.training.task import Task


def view_of(task: Task, reports: Mapping[str, np.ndarray]) -> View:
    """The view of a selector before any client is asked in a round; `reports` were gathered before
    the first round."""
    settings = task.settings
    return View(
        clients=settings.clients,
        cohort=settings.cohort,
        rounds=settings.rounds,
        sizes=task.sizes,
        label_counts=reports.get("label_counts"),
        reports={name: values for name, values in reports.items() if name != "label_counts"},
    )


def select(
    task: Task,
    selector: CheckedSelector,
    state: State,
    candidates: np.ndarray,
    view: View,
    round: int,
    ledger: Ledger,
) -> np.ndarray:
    """Choose the cohort of a round, and enter it and the time of the choice into the ledger."""
    rng = generator(task.settings.seed, "selection", round=round)
    with ledger.timed("selecting"), ledger.timed_scoring():
        ledger.cohort = selector.select(state, candidates, view, rng)
    return ledger.cohort


def choice_metrics(
    task: Task,
    selector: CheckedSelector,
    state: State,
    candidates: np.ndarray,
    view: View,
    cohort: np.ndarray,
) -> dict[str, float]:
    """The metrics of a choice: the selector's own and, if some clients overlap with others, how the
    selector prefers these."""
    overlapping = task.shards.overlapping()
    metrics = selector.measure(state, candidates, cohort, view)
    metrics |= cohort_overlap(overlapping, cohort)
    probabilities = selector.probabilities(state, candidates, view)
    if probabilities is not None:
        metrics |= probability_overlap(overlapping, candidates, probabilities)
    return metrics
