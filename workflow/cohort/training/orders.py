"""What a round asks of its clients, where that is not all their data and all of J."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cohort.cell.settings import local_work
from cohort.core.randomness import generator
from cohort.training.trainers.base import Orders, local_steps

if TYPE_CHECKING:
    from cohort.training.task import Task
    from cohort.training.updates import Weights


def orders_of(
    task: Task, cohort: np.ndarray, quotas: np.ndarray | None, memory: Weights, round: int
) -> Orders:
    """By the selector's quotas (a row of `quotas` for each client), by who is slow, and by what the server rule remembers."""
    samples = (
        {}
        if quotas is None
        else {
            int(client): portion(task, int(client), quota, round)
            for client, quota in zip(cohort, quotas, strict=True)
        }
    )
    return Orders(
        samples, _limits(task, cohort, samples, round), partial(task.server.drift, memory)
    )


def portion(task: Task, client: int, quota: np.ndarray, round: int) -> np.ndarray:
    """As many of a client's samples of each class as its quota says, drawn anew in each round."""
    indices = generator(task.settings.seed, "portion", round=round, client=client).permutation(
        task.shards.indices[client]
    )
    labels = task.train_samples.labels[indices].cpu().numpy()
    return np.concatenate([indices[labels == label][:count] for label, count in enumerate(quota)])


def _limits(
    task: Task, cohort: np.ndarray, samples: dict[int, np.ndarray], round: int
) -> dict[int, int]:
    """After how many steps those stop that do not manage all of J."""
    settings = task.settings
    most, epochs = local_work(settings.J)
    draws = (generator(settings.seed, "stragglers", round=number) for number in (0, round))
    managed = task.participation.efforts(settings.clients, most, *draws)
    sizes = {
        int(client): len(samples.get(int(client), task.shards.indices[client]))
        for client in cohort
        if managed[client] < most
    }
    return {
        client: int(managed[client]) * (local_steps(size, settings)[1] if epochs else 1)
        for client, size in sizes.items()
    }
