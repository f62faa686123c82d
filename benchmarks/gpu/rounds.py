"""Rounds of the usual workloads by the serial trainer, the batched one with and without kernels for
many clients, and stacks of cells."""

from __future__ import annotations

import copy
import gc
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import numpy as np
import torch
from torch import nn

from benchmarks.draw import draw_work
from benchmarks.gpu.piece import Report, interleaved_seconds
from benchmarks.processes import times_faster
from benchmarks.variants.inputs import flat
from benchmarks.variants.ours import task_of
from benchmarks.work import Work
from benchmarks.workloads import W1, W2, W2A, W2B, W3
from cohort.kernels import padding
from cohort.training.job.machine import set_up
from cohort.training.ledger import Cursor
from cohort.training.task import RunState, Task
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.trainers.stacked import Part, StackedTrainer, Stacks
from cohort.training.trainers.trainer import Trained
from cohort.training.updates import Weights

AML = replace(W1, name="AML", title="LeNet of the AML project, as its study has it", J="J16")
AML = replace(AML, batch=128)
WIDE = {"VGG-11": "vgg11", "ResNet-9": "resnet9", "ResNet-18": "resnet18"}
WIDE |= {"EfficientNet-B0": "efficientnet-b0"}
WIDER = [replace(W1, name=key, title=key, model=model, classes=10) for key, model in WIDE.items()]
WORKLOADS = (W1, AML, W2, W2A, W2B, W3, *WIDER)
SERIAL = "serial"
MOST = 20  # rounds of each


class WithoutKernels(StackedTrainer):
    """The batched trainer by PyTorch alone."""

    def network_on_device(self) -> nn.Module:
        return padding.with_padding(self.model)


class Player:
    """Plays the rounds of a workload by one trainer, one per call."""

    cells = 1

    def __init__(self, task: Task, device: torch.device):
        task = replace(task, model=copy.deepcopy(task.model))  # which a trainer may change
        before = _reset_peak(device)
        self.states: Iterator[RunState] = task.procedure.rounds_of(task).run(
            task.procedure.begin(task)
        )
        self.weights: np.ndarray | None = flat(next(self.states).weights.values())
        self.memory_mb = _peak_mb(device, before)

    def __call__(self) -> None:
        """Play the next round."""
        next(self.states)


class Cells:
    """Trains the cohorts of several cells, which differ in their seeds, as one stack, a round per
    call. Only the mean of each cell's models is worked out besides."""

    def __init__(self, task: Task, cells: int, device: torch.device):
        before = _reset_peak(device)
        seeds = (replace(task.settings, seed=seed) for seed in range(cells))
        self.tasks = [replace(task, settings=settings) for settings in seeds]
        self.trainers = list(map(StackedTrainer, self.tasks))
        self.cells, self.round, self.stacks = cells, 0, Stacks()
        self.state = [task.initial_weights() for _ in self.tasks]
        self()
        self.weights: np.ndarray | None = None  # of cohorts that no other trainer has
        self.memory_mb = _peak_mb(device, before)

    def __call__(self) -> None:
        """Play the next round."""
        self.round += 1
        rng, parts = np.random.default_rng(self.round), []
        for trainer, weights in zip(self.trainers, self.state, strict=True):
            chosen = rng.permutation(trainer.settings.clients)[: trainer.settings.cohort]
            works = trainer.full_work(weights, chosen, self.round)
            parts.append(Part(trainer, works, weights, Cursor()))
        self.state = [self._mean(answer) for answer in self.stacks.train(parts)]

    def _mean(self, answer: Trained | Exception) -> Weights:
        if isinstance(answer, Exception):
            raise answer
        return {name: rows.float().mean(dim=0).to(rows) for name, rows in answer[0].items()}


def measure(report: Report) -> None:
    """Time all trainers on each workload."""
    set_up("float32", report.device)
    workloads = [workload.tiny() for workload in (W2A, W3)] if report.is_trial else WORKLOADS
    report.steps = len(workloads)
    for workload in workloads:
        with report.step(workload.title) as until:
            _time_trainers(draw_work(workload), report, until)


def _time_trainers(work: Work, report: Report, until: float) -> None:
    device, task = report.device, task_of(work, "batched", report.device)
    exact = Player(_in_float64(task), device).weights
    assert exact is not None
    players: dict[str, Player | Cells] = {
        SERIAL: Player(replace(task, trainer=SerialTrainer), device)
    }
    if task.trainer is StackedTrainer:
        cells = 2 if report.is_trial else 4 if work.workload.name in WIDE else 16
        players["batched, without kernels"] = Player(replace(task, trainer=WithoutKernels), device)
        players["batched"] = Player(task, device)
        players[f"batched, {cells} cells"] = Cells(task, cells, device)
    most = 1 if report.is_trial else MOST
    taken = interleaved_seconds(players, device, most, until)
    for trainer, player in players.items():
        seconds = [value / player.cells for value in taken[trainer]]
        report.add(
            {
                "workload": work.workload.name,
                "trainer": trainer,
                "median s/round": median(seconds),
                "min": min(seconds),
                "max": max(seconds),
                "rounds": len(seconds),
                f"vs {SERIAL}": times_faster(taken[SERIAL], seconds),
                "memory, MB": player.memory_mb,
                "error": None if player.weights is None else _distance(player.weights, exact),
            }
        )


def _in_float64(task: Task) -> Task:
    """The task in double precision, by the serial trainer."""
    samples = task.train_samples
    samples = replace(samples, mean=samples.mean.double(), std=samples.std.double())
    settings = replace(task.settings, precision="float64")
    model = copy.deepcopy(task.model).double()
    task = replace(task, settings=settings, model=model, trainer=SerialTrainer)
    return replace(task, train_samples=samples, test_samples=samples, validation_samples=samples)


def _distance(weights: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(weights - exact) / np.linalg.norm(exact))


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
