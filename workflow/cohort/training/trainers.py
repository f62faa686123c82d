"""Which trainer a run has."""

from __future__ import annotations

import torch
from torch import nn

from cohort.cell import Settings
from cohort.training.batched import BatchedTrainer
from cohort.training.chained import ChainedTrainer
from cohort.training.serial import SerialTrainer
from cohort.training.trainer import Trainer

TRAINERS: dict[str, type[Trainer]] = {trainer.name: trainer for trainer in (SerialTrainer, ChainedTrainer, BatchedTrainer)}


def trainer_for(wish: str, device: torch.device, model: nn.Module, settings: Settings) -> str:
    """On a GPU, which one client cannot fill, the whole cohort at once; on a CPU one client after another, without PyTorch's graph; where
    these do not fit, the plain trainer."""
    wished = wish if wish != "auto" else BatchedTrainer.name if device.type == "cuda" else ChainedTrainer.name
    return wished if TRAINERS[wished].fits(model, settings) else SerialTrainer.name
