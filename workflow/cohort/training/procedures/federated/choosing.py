"""How the procedures that have a selector choose their cohorts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cohort.core.randomness import generator
from cohort.selection.selector import State, View
from cohort.training.contract.checked_selector import CheckedSelector
from cohort.training.ledger import Ledger
from cohort.training.procedures.federated.overlap_metrics import of_cohort, of_probabilities
from cohort.training.task import Task


def view_of(task: Task, reports: Mapping[str, np.ndarray]) -> View:
    """What the selector of a task may know before it is told anything in a round."""
    settings = task.settings
    return View(
        clients=settings.clients,
        cohort=settings.cohort,
        rounds=settings.rounds,
        sizes=task.sizes,
        label_counts=reports.get("label_counts"),
        reports={name: values for name, values in reports.items() if name != "label_counts"},
    )


def choose(
    task: Task, state: State, candidates: np.ndarray, view: View, round: int, ledger: Ledger
) -> np.ndarray:
    """Choose the cohort of a round, and note it with what the selector measures and, if some
    clients overlap, how it prefers them."""
    selector = CheckedSelector(task.selector)
    rng = generator(task.settings.seed, "selection", round=round)
    with ledger.timed("selecting"), ledger.scoring():
        cohort = selector.select(state, candidates, view, rng)
    ledger.cohort = cohort
    ledger.measured(**selector.measure(state, candidates, cohort, view))
    overlapping = task.shards.overlapping()
    ledger.measured(**of_cohort(overlapping, cohort))
    chances = selector.probabilities(state, candidates, view)
    if chances is not None:
        ledger.measured(**of_probabilities(overlapping, candidates, chances))
    return cohort
