"""The ability to probe, in a round: local models that were trained a little before the cohort is
chosen, and from which its clients continue."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cohort.cell.settings import Settings, local_work
from cohort.training.trainers.local_work import LocalWork, local_steps
from cohort.training.updates import Updates, Weights

NORM_BYTES = 8  # of the number that a probed client sends


@dataclass(frozen=True)
class Probes:
    """The local models of a pool after the first `batches` of each client's local work."""

    updates: Updates
    batches: int

    def norms(self, weights: Weights) -> np.ndarray:
        """The distance of each client's model (client) from the trainable global weights."""
        return self.updates.only(weights).distances(weights).cpu().numpy()

    def remaining_work(self, work: LocalWork, settings: Settings) -> LocalWork:
        """A client's work after its probe: all but the first epoch if J counts epochs, else all but
        the steps of the probe."""
        _, counts_epochs = local_work(settings.J)
        per_epoch = local_steps(len(work.samples), settings)[1]
        return replace(
            work,
            weights=self.updates.client_weights(self._row(work.client)),
            begin=per_epoch if counts_epochs else self.batches,
        )

    def correct_losses(self, updates: Updates) -> Updates:
        """Correct the losses of updates after the remaining work: a client whose probe was all its
        work keeps the loss of its probe."""
        rows = [self._row(client) for client in updates.clients]
        continued = (updates.steps > 0).to(updates.losses.device)
        return replace(updates, losses=updates.losses.where(continued, self.updates.losses[rows]))

    def _row(self, client: int) -> int:
        return self.updates.clients.index(client)


def probing_work(work: LocalWork, batches: int, settings: Settings) -> LocalWork:
    """The first `batches` of a client's local work, but no more than an epoch if J counts
    epochs."""
    _, counts_epochs = local_work(settings.J)
    per_epoch = local_steps(len(work.samples), settings)[1]
    return replace(work, end=min(batches, per_epoch) if counts_epochs else batches)
