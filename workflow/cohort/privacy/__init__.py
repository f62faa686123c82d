"""Protection of the label counts that clients report: the truth, with Laplace noise, or a lie."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class LabelReport:
    """The way in which clients report how many samples of each class they hold.

    A share of `liars` claims to hold equally many of every class. With `epsilon` above 0 every
    client adds Laplace noise of scale 1 / epsilon: one sample more or less changes the probability
    of any report by at most a factor of exp(epsilon). Who knows the run's seed can remove it.
    """

    epsilon: float = 0.0
    liars: float = 0.0

    def reported_counts(self, label_counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The label counts that clients report (client, class), given the true ones."""
        reported = label_counts
        if self.liars:
            clients = len(label_counts)
            lying = rng.choice(clients, round(self.liars * clients), replace=False)
            reported = label_counts.astype(np.float64)
            reported[lying] = reported[lying].mean(axis=1, keepdims=True)
        if self.epsilon:
            reported = reported + rng.laplace(scale=1 / self.epsilon, size=reported.shape)
        return reported
