"""The ability to allocate samples, in a round: clients that train on some of theirs."""

from __future__ import annotations

import numpy as np

from cohort.core.randomness import generator
from cohort.training.task import Task


def allocated_samples(task: Task, client: int, quota: np.ndarray, round: int) -> np.ndarray:
    """Draw the samples on which a client trains in this round: of each class as many as its `quota`
    (class) says, without replacement. Return their indices."""
    rng = generator(task.settings.seed, "portion", round=round, client=client)
    indices = rng.permutation(task.shards.indices[client])
    labels = task.train_samples.labels[indices].cpu().numpy()
    return np.concatenate([indices[labels == label][:count] for label, count in enumerate(quota)])
