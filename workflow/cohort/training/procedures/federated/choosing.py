"""Choosing a cohort, in every procedure that has a selector, and the metrics of the choice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cohort.core.randomness import generator
from cohort.selection.selector import State, View
from cohort.training.contract import CheckedSelector
from cohort.training.ledger import Ledger
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
    """Choose the cohort of a round, and enter it, the time of the choice and its metrics into the
    ledger: the selector's own and, if some clients overlap with others, how it prefers these."""
    rng = generator(task.settings.seed, "selection", round=round)
    with ledger.timed("selecting"), ledger.timed_scoring():
        cohort = ledger.cohort = selector.select(state, candidates, view, rng)
    ledger.measured(**selector.measure(state, candidates, cohort, view))
    overlapping = task.shards.overlapping()
    if overlapping.any():
        ledger.measured(overlapping_chosen=float(overlapping[cohort].mean()))
    probabilities = selector.probabilities(state, candidates, view)
    among = overlapping[candidates]
    if probabilities is not None and among.any() and not among.all():
        # that of the mean overlapping client as a multiple of the mean other client's
        regular = probabilities[~among].mean()
        preference = probabilities[among].mean() / regular if regular else np.inf
        ledger.measured(
            overlapping_probability=float(probabilities[among].sum()),
            overlapping_preference=float(preference),
        )
    return cohort
