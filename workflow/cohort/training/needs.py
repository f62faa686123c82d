"""What selectors may ask for, how it is measured, and what it costs beyond training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from cohort.data.samples import Samples
from cohort.selection.selector import Need
from cohort.training.evaluation import evaluate
from cohort.training.updates import Updates


@dataclass(frozen=True)
class Lookout:
    """What the server can look at: a model to load weights into, the test samples, and those of them that are reserved."""

    model: nn.Module
    samples: Samples
    reserved: Tensor


@dataclass(frozen=True)
class NeedCost:
    """Bytes that every client uploads once for a need, and the measurement of each cohort, if there is one."""

    upload_once: Callable[[int], int] = lambda classes: 0
    report: Callable[[Updates, Lookout], np.ndarray] | None = None


def reserved_loss(updates: Updates, lookout: Lookout) -> np.ndarray:
    """The loss of each local model on the reserved samples; the server has both, so nothing more is sent."""
    rows = range(len(updates.sizes))
    return np.array([evaluate(lookout.model, updates.of_client(row), lookout.samples, lookout.reserved).loss for row in rows])


NEEDS: dict[Need, NeedCost] = {
    "label_counts": NeedCost(upload_once=lambda classes: 4 * classes),
    "reserved_loss": NeedCost(report=reserved_loss),
}


def bytes_once(needs: Iterable[Need], clients: int, classes: int) -> int:
    """What all clients upload once, before the first round."""
    return sum(clients * NEEDS[need].upload_once(classes) for need in needs)


def reports(needs: Iterable[Need], updates: Updates, lookout: Lookout) -> tuple[dict[Need, np.ndarray], int]:
    """Each need's report on the cohort, and how many samples were evaluated for them."""
    measured = {need: report(updates, lookout) for need in sorted(needs) if (report := NEEDS[need].report) is not None}
    return measured, len(measured) * len(updates.sizes) * len(lookout.reserved)
