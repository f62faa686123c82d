"""Steps on one sample: by the trainers, and captured as CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import median

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmarks.draw import draw_work
from benchmarks.gpu.report import Report
from benchmarks.gpu.rounds import TRAINERS, Player
from benchmarks.gpu.timing import interleaved_seconds
from benchmarks.variants.inputs import network
from benchmarks.variants.ours import samples_of
from benchmarks.work import Work
from benchmarks.workloads import W3
from cohort.training.job.machine import set_up
from cohort.training.trainers.stacked import CudaGraphFunction

LENET5 = replace(W3, title="LeNet-5", model="lenet5", shape=(1, 32, 32))
AML_LENET = replace(W3, title="LeNet of the AML project", model="aml-lenet", shape=(3, 32, 32))
WORKLOADS = (W3, LENET5, AML_LENET)
PER_GRAPH = (1, 20)  # steps in a CUDA graph
MOST = 20  # epochs of each


class CapturedEpoch:
    """An epoch of plain SGD steps on one sample each, some of them in one CUDA graph."""

    def __init__(self, given: Work, per_graph: int, device: torch.device):
        samples = samples_of(given, device)
        everything = torch.arange(given.workload.size, device=device)
        inputs, targets = samples.inputs(everything), samples.labels[everything]
        self.batches = list(zip(inputs.split(per_graph), targets.split(per_graph), strict=True))
        self.model, self.lr = network(given).to(device), given.workload.lr
        self.parameters: list[Tensor] = list(self.model.parameters())
        self.steps = CudaGraphFunction(
            self._steps, [parameter.detach() for parameter in self.parameters]
        )

    def __call__(self) -> None:
        """Take a step on every sample."""
        for images, labels in self.batches:
            self.steps(images, labels)

    def is_captured(self) -> str:
        """`yes` if the steps were replayed from CUDA graphs, else why not."""
        if not self.parameters[0].is_cuda:
            return "skipped: CUDA graphs need a GPU"
        return "yes" if all(self.steps.captures.values()) else "no: the capture failed"

    def _steps(self, images: Tensor, labels: Tensor) -> Tensor:
        loss = torch.zeros((), device=images.device)
        for image, label in zip(images.split(1), labels.split(1), strict=True):
            loss = cross_entropy(self.model(image), label)
            gradients = torch.autograd.grad(loss, self.parameters)
            with torch.no_grad():
                torch._foreach_add_(self.parameters, gradients, alpha=-self.lr)
        return loss.detach()


def measure(report: Report) -> None:
    """Time an epoch of single-sample steps, with and without CUDA graphs."""
    set_up("float32", report.device)
    workloads = (replace(W3.tiny(), clients=1, cohort=1),) if report.is_trial else WORKLOADS
    report.plan(len(workloads))
    for workload in workloads:
        with report.step(workload.title) as until:
            _epochs(draw_work(workload), report, until)


def _epochs(given: Work, report: Report, until: float) -> None:
    device, steps = report.device, given.workload.steps
    graphs = {
        f"plain SGD, {count} per graph": CapturedEpoch(given, count, device) for count in PER_GRAPH
    }
    trainers = {f"{trainer} trainer": Player(given, trainer, device) for trainer in TRAINERS}
    ways: dict[str, Callable[[], None]] = {**trainers, **graphs}
    most = 1 if report.is_trial else MOST
    for way, seconds in interleaved_seconds(ways, device, most, until).items():
        captured = graphs[way].is_captured() if way in graphs else "-"
        report.add(
            {
                "network": given.workload.model,
                "way": way,
                "median us/step": 1e6 * median(seconds) / steps,
                "min": 1e6 * min(seconds) / steps,
                "max": 1e6 * max(seconds) / steps,
                "epochs": len(seconds),
                "captured": captured,
            }
        )
