"""What selectors may ask for, how it is measured, and what it costs beyond training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cohort.data.samples import Samples
from cohort.selection.selector import Need
from cohort.training.evaluation import mean_softmax
from cohort.training.trainers.base import Trainer
from cohort.training.updates import Updates


@dataclass(frozen=True)
class Lookout:
    """What can be looked at: a trainer with its network, the test samples and those of them that are reserved for the server, the training
    samples and which of them each client holds."""

    trainer: Trainer
    samples: Samples
    reserved: Tensor
    train_samples: Samples
    shards: Sequence[np.ndarray]


@dataclass(frozen=True)
class NeedCost:
    """What a need costs: the bytes that every client uploads once, and each client of a cohort in a round; its measurement of the cohort,
    if there is one, and how many samples are evaluated for it."""

    upload_once: Callable[[int], int] = lambda classes: 0
    upload: Callable[[int], int] = lambda classes: 0
    report: Callable[[Updates, Lookout], np.ndarray] | None = None
    looks: Callable[[Updates, Lookout], int] = lambda updates, lookout: 0


def reserved_loss(updates: Updates, lookout: Lookout) -> np.ndarray:
    """The loss of each local model on the reserved samples; the server has both, so nothing more is sent."""
    return lookout.trainer.losses(updates, lookout.samples, lookout.reserved)


def soft_labels(updates: Updates, lookout: Lookout) -> np.ndarray:
    """The mean of what each local model says of its own client's samples, which the client sends."""
    found = []
    for row, client in enumerate(updates.clients):
        indices = torch.from_numpy(lookout.shards[client]).to(lookout.train_samples.labels.device)
        found.append(
            mean_softmax(
                lookout.trainer.model, updates.of_client(row), lookout.train_samples, indices
            )
            .cpu()
            .numpy()
        )
    return np.stack(found)


NEEDS: dict[Need, NeedCost] = {
    "label_counts": NeedCost(upload_once=lambda classes: 4 * classes),
    "reserved_loss": NeedCost(
        report=reserved_loss,
        looks=lambda updates, lookout: len(updates.sizes) * len(lookout.reserved),
    ),
    "soft_labels": NeedCost(
        upload=lambda classes: 4 * classes,
        report=soft_labels,
        looks=lambda updates, lookout: int(updates.sizes.sum()),
    ),
}


def bytes_once(needs: Iterable[Need], clients: int, classes: int) -> int:
    """What all clients upload once, before the first round."""
    return sum(clients * NEEDS[need].upload_once(classes) for need in needs)


def bytes_each(needs: Iterable[Need], classes: int) -> int:
    """What a client of a cohort uploads in a round beside its model."""
    return sum(NEEDS[need].upload(classes) for need in needs)


def reports(
    needs: Iterable[Need], updates: Updates, lookout: Lookout
) -> tuple[dict[Need, np.ndarray], int]:
    """Each need's report on the clients that answered, and how many samples were evaluated for them."""
    measured = {
        need: report(updates, lookout)
        for need in sorted(needs)
        if (report := NEEDS[need].report) is not None
    }
    return measured, sum(NEEDS[need].looks(updates, lookout) for need in measured)
