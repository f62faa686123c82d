"""Rounds of the usual workloads by the batched and the serial trainer."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import torch

from benchmarks.contest import largest_difference
from benchmarks.draw import draw_work
from benchmarks.gpu.piece import Report, interleaved_seconds
from benchmarks.processes import times_faster
from benchmarks.variants.inputs import flat
from benchmarks.variants.ours import task_of
from benchmarks.work import Work
from benchmarks.workloads import W1, W2, W2A, W2B, W3
from cohort.training.job.machine import set_up
from cohort.training.task import RunState

VGG11, RESNET18 = (
    replace(W1, name=name, title=name, model=model, classes=10)
    for name, model in (("VGG-11", "vgg11"), ("ResNet-18", "resnet18"))
)
WORKLOADS = (W1, W2, W2A, W2B, W3, VGG11, RESNET18)
TRAINERS = ("serial", "batched")  # the reference first
MOST = 20  # rounds of each


class Player:
    """Plays the rounds of a workload by one trainer, one per call."""

    def __init__(self, given: Work, trainer: str, device: torch.device):
        before = _reset_peak(device)
        task = task_of(given, trainer, device)
        self.trainer = task.trainer.name  # serial where the other refuses the network
        self.states: Iterator[RunState] = task.procedure.rounds(task, task.procedure.begin(task))
        self.weights = flat(next(self.states).weights.values())
        self.memory_mb = _peak_mb(device, before)

    def __call__(self) -> None:
        """Play the next round."""
        next(self.states)


def measure(report: Report) -> None:
    """Time the serial and the batched trainer on each workload."""
    set_up("float32", report.device)
    workloads = [each.tiny() for each in (W2A, W3)] if report.is_trial else WORKLOADS
    report.steps = len(workloads)
    for workload in workloads:
        with report.step(workload.title) as until:
            _time_trainers(draw_work(workload), report, until)


def _time_trainers(given: Work, report: Report, until: float) -> None:
    both = (Player(given, trainer, report.device) for trainer in TRAINERS)
    players = {player.trainer: player for player in both}
    most = 1 if report.is_trial else MOST
    taken = interleaved_seconds(players, report.device, most, until)
    reference, *_ = TRAINERS
    for trainer, player in players.items():
        seconds = taken[trainer]
        report.add(
            {
                "workload": given.workload.name,
                "trainer": trainer,
                "median s/round": median(seconds),
                "min": min(seconds),
                "max": max(seconds),
                "rounds": len(seconds),
                f"vs {reference}": times_faster(taken[reference], seconds),
                "memory, MB": player.memory_mb,
                "difference": None
                if trainer == reference
                else largest_difference(player.weights, players[reference].weights),
            }
        )


def _reset_peak(device: torch.device) -> int:
    """Count the peak of GPU memory anew from here; return the bytes of tensors there now."""
    if device.type == "cpu":
        return 0
    gc.collect()  # CUDA graphs of earlier workloads
    torch.cuda.reset_peak_memory_stats(device)
    return torch.cuda.memory_allocated(device)


def _peak_mb(device: torch.device, before: int) -> float | None:
    if device.type == "cpu":
        return None
    return (torch.cuda.max_memory_allocated(device) - before) / 1e6
