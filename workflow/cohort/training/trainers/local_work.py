"""Local work: what one client does in a round. Trainers do it and know nothing else of a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from cohort.core.randomness import generator
from cohort.settings import Settings, local_work
from cohort.training.updates import Weights


@dataclass(frozen=True, kw_only=True)
class LocalWork:
    """One client's work: from which weights, on which samples, at which learning rate.

    `round` and `client` address the random draws of batches, augmentation and dropout. Of the steps
    that J asks for, the client takes those from `begin` to `end`. `correction` gives what is added
    to the weights after each step, times the learning rate (SCAFFOLD's control variates). Samples
    are shuffled in each epoch unless they are to be taken `in_order`.
    """

    client: int
    round: int
    weights: Weights
    samples: np.ndarray
    lr: float
    begin: int = 0
    end: int | None = None
    correction: Callable[[], Weights] = field(default=dict)
    in_order: bool = False

    def steps(self, settings: Settings) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each step's number within J, and the positions of its batch in `samples`."""
        if not len(self.samples):
            return iter(())
        rng = generator(settings.seed, "batches", round=self.round, client=self.client)
        draw = np.arange if self.in_order else rng.permutation
        return islice(enumerate(batches(len(self.samples), settings, draw)), self.begin, self.end)

    def last_batch(self, settings: Settings) -> np.ndarray:
        """The samples of its last step; none without a step."""
        steps = list(self.steps(settings))
        return self.samples[steps[-1][1]] if steps else self.samples[:0]


def local_steps(size: int, settings: Settings) -> tuple[int, int]:
    """The number of steps that J asks of a client with `size` samples, and that of an epoch."""
    amount, epochs = local_work(settings.J)
    per_epoch = -(-size // settings.batch)
    return amount * per_epoch if epochs else amount, per_epoch


def batches(
    size: int, settings: Settings, draw: Callable[[int], np.ndarray]
) -> Iterator[np.ndarray]:
    """Yield the local batches of J as positions of samples, epoch after epoch until J is done.
    `draw` puts so many samples in order, for each epoch anew."""
    steps, per_epoch = local_steps(size, settings)
    for step in range(steps):
        position = step % per_epoch
        if position == 0:
            order = draw(size)
        yield order[position * settings.batch : (position + 1) * settings.batch]
