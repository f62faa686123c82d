"""Simulates how long rounds take on the clients' devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cohort.core.randomness import generator
from cohort.training.task import Task

FORWARD = 1 / 3  # the work of evaluating a sample, of that of training on it


class Clock:
    """Simulates the time that clients take to receive models, compute and send models on the task's
    devices; all times are 0 if nothing is known of these."""

    def __init__(self, task: Task):
        rng = generator(task.settings.seed, "devices")
        self.speeds = task.client_devices.speeds(task.settings.clients, rng)
        self.batch = task.settings.batch

    def seconds(
        self, clients: Sequence[int] | np.ndarray, steps: np.ndarray | int, size: int
    ) -> np.ndarray:
        """The simulated seconds that each of these clients takes for so many local steps (client)
        and for sending and receiving so many bytes; 0 without a simulation."""
        if self.speeds is None:
            return np.zeros(len(clients))
        rows = np.asarray(clients, dtype=np.int64)
        return steps * self.batch / self.speeds.samples[rows] + size / self.speeds.bytes[rows]

    def evaluation_seconds(
        self, clients: Sequence[int] | np.ndarray, samples: Mapping[int, int]
    ) -> np.ndarray:
        """The simulated seconds that each of these clients takes to evaluate a model on its
        samples; 0 without a simulation. `samples` holds their numbers by client, none for 0."""
        if self.speeds is None:
            return np.zeros(len(clients))
        counts = np.array([samples.get(int(client), 0) for client in clients], dtype=float)
        return FORWARD * counts / self.speeds.samples[np.asarray(clients, dtype=np.int64)]
