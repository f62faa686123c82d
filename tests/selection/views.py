"""What a selector sees of clients that tests make up."""

import numpy as np

from cohort.selection.selector import View


def labeled(counts: np.ndarray, cohort: int) -> View:
    """A view of clients with these label counts (client, class)."""
    return View(clients=len(counts), cohort=cohort, sizes=counts.sum(axis=1), label_counts=counts)


def alike(clients: int, cohort: int, rounds: int = 1) -> View:
    """A view of clients with one sample each."""
    return View(clients=clients, cohort=cohort, rounds=rounds, sizes=np.ones(clients))
