"""Trainers: which one a run has."""

from __future__ import annotations

from collections.abc import Container

import torch
from torch import nn

from cohort.cell.settings import Settings
from cohort.training.trainers.base import Trainer
from cohort.training.trainers.batched.trainer import BatchedTrainer
from cohort.training.trainers.fused import FusedTrainer
from cohort.training.trainers.serial import SerialTrainer

TRAINERS: dict[str, type[Trainer]] = {
    trainer.name: trainer for trainer in (SerialTrainer, FusedTrainer, BatchedTrainer)
}
EARLIER_NAMES = {"chained": "fused"}
"""Names of trainers in checkpoints of earlier versions."""


def choose_trainer(
    wish: str,
    device: torch.device,
    model: nn.Module,
    settings: Settings,
    allowed: Container[str] = tuple(TRAINERS),
) -> str:
    """The name of the trainer that is wished for if it is allowed and fits, else of the serial one.

    `auto` wishes for the batched trainer on a GPU and for the fused one on a CPU.
    """
    wish = EARLIER_NAMES.get(wish, wish)
    if wish == "auto":
        wish = BatchedTrainer.name if device.type == "cuda" else FusedTrainer.name
    fits = wish in allowed and TRAINERS[wish].fits(model, settings)
    return wish if fits else SerialTrainer.name
