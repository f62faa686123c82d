"""Which trainer a run has."""

from __future__ import annotations

import torch
from torch import nn

from cohort.cell import Settings
from cohort.training.batched import BatchedTrainer
from cohort.training.serial import SerialTrainer
from cohort.training.trainer import Trainer

TRAINERS: dict[str, type[Trainer]] = {trainer.name: trainer for trainer in (SerialTrainer, BatchedTrainer)}


def trainer_for(wish: str, device: torch.device, model: nn.Module, settings: Settings) -> str:
    """On a GPU, which one client cannot fill, the whole cohort at once; on a CPU, and wherever the batched trainer does not fit, one client
    after another."""
    wished = wish if wish != "auto" else BatchedTrainer.name if device.type == "cuda" else SerialTrainer.name
    return wished if TRAINERS[wished].fits(model, settings) else SerialTrainer.name
