"""A federation whose every number can be worked out by hand.

All images are black, so that a linear model is its bias: outputs do not depend on the sample, and
one step on a whole client moves the bias by the learning rate times (its label shares - softmax).
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from cohort.partition.deal import Shards
from cohort.selection import Selector
from cohort.selection.selector import Reports, Rng, State, View
from cohort.training.procedures.procedure import Federated
from cohort.training.task import RunState, Task
from tests.training.small_task import plain_samples, small_task

LABELS = ((0, 0, 1, 2), (1, 1), (0, 2, 2), ())  # of each client
COUNTS = np.array([[2, 1, 1], [0, 2, 0], [1, 0, 2], [0, 0, 0]])
RESERVED = (0, 1, 1, 2, 0)  # labels of the test samples that are reserved
MODEL_BYTES = (64 * 3 + 3) * 8


@dataclass(frozen=True, kw_only=True)
class Spy(Selector):
    """Chooses the first clients and keeps what it was shown."""

    views: list[View] = field(default_factory=list)
    reports: list[Reports] = field(default_factory=list)

    def begin(self, view: View, rng: Rng) -> State:
        self.views.append(view)
        return {}

    def select(self, state: State, candidates: np.ndarray, view: View, rng: Rng) -> np.ndarray:
        self.views.append(view)
        return candidates[: view.cohort]

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        self.views.append(view)
        self.reports.append(reports)
        return state


def spying(*needs: str, base: type[Spy] = Spy) -> type[Spy]:
    """A spy that needs these."""
    needing = type("Needing", (base,), {"needs": frozenset(needs)})
    return dataclass(frozen=True, kw_only=True)(needing)


def task_by_hand(
    selector: Selector, bias: tuple[float, float, float] = (0, 0, 0), **settings: Any
) -> Task:
    """Four clients with the labels above, the last one without any; one step on all samples."""
    labels = torch.tensor([label for own in LABELS for label in own])
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).double()
    with torch.no_grad():
        model[1].weight.zero_()
        model[1].bias.copy_(torch.tensor(bias, dtype=torch.float64))
    test = torch.tensor([*RESERVED, *[0] * 5])
    sizes = tuple(map(len, LABELS))
    task = small_task(
        selector=selector,
        model=model,
        train=plain_samples(torch.zeros(len(labels), 1, 8, 8, dtype=torch.float64), labels),
        test=plain_samples(torch.zeros(len(test), 1, 8, 8, dtype=torch.float64), test),
        sizes=sizes,
        **({"J": "J1", "batch": 10, "lr": 0.3} | settings),
    )
    parts = np.split(np.arange(len(labels)), np.cumsum(sizes)[:-1])
    return dataclasses.replace(task, shards=Shards(parts, COUNTS))


def played(task: Task) -> RunState:
    """The state after the last round."""
    *_, state = Federated().rounds_of(task).run(Federated().begin(task))
    return state


def costs(state: RunState, name: str) -> list[float]:
    """A cost round by round."""
    return [value for _, value in state.history.cost[name]]
