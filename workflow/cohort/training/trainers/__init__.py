"""Trainers: which one a run has."""

import torch

from cohort.training.task import Task
from cohort.training.trainers.base import Trainer
from cohort.training.trainers.native import NativeTrainer
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.trainers.stacked import StackedTrainer

_KINDS: tuple[type[Trainer], ...] = SerialTrainer, NativeTrainer, StackedTrainer
TRAINERS = {trainer.name: trainer for trainer in _KINDS}


def choose_trainer(wish: str, device: torch.device, task: Task) -> tuple[str, str]:
    """The name of the trainer to use, and a reason: the wished one and no reason, or the serial one
    and why the other cannot train. `auto` wishes for the stacked trainer on a GPU and for the
    native one on a CPU."""
    if wish == "serial":
        return wish, ""
    if wish == "auto":
        wish = StackedTrainer.name if device.type == "cuda" else NativeTrainer.name
    if wish not in task.procedure.usable_trainers():
        return "serial", f"procedure {task.procedure} has no {wish} training"
    reason = TRAINERS[wish].refusal(task)
    return ("serial" if reason else wish), reason
