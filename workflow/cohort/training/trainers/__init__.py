"""Which trainer a run has."""

from __future__ import annotations

import torch
from torch import nn

from cohort.cell.settings import Settings
from cohort.training.trainers.base import Trainer
from cohort.training.trainers.batched.trainer import BatchedTrainer
from cohort.training.trainers.fused import ChainedTrainer
from cohort.training.trainers.serial import SerialTrainer

TRAINERS: dict[str, type[Trainer]] = {
    trainer.name: trainer for trainer in (SerialTrainer, ChainedTrainer, BatchedTrainer)
}


def trainer_for(wish: str, device: torch.device, model: nn.Module, settings: Settings) -> str:
    """On a GPU, which one client cannot fill, the whole cohort at once; on a CPU one client after another, without PyTorch's graph; where
    these do not fit, the plain trainer."""
    wished = (
        wish
        if wish != "auto"
        else BatchedTrainer.name
        if device.type == "cuda"
        else ChainedTrainer.name
    )
    return wished if TRAINERS[wished].fits(model, settings) else SerialTrainer.name
