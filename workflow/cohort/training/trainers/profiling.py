"""Plain PyTorch that also notes what each local step did."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from cohort.records.history import PROFILE
from cohort.training.cursor import Collect, ResumableCall
from cohort.training.trainers.local_work import LocalWork
from cohort.training.trainers.optimizers import LocalOptimizer
from cohort.training.trainers.serial import AfterStep, SerialTrainer
from cohort.training.updates import Weights

NOTED = len(PROFILE) - 1  # columns of a note: all but the round


class StepRecordingTrainer(SerialTrainer):
    """The serial trainer that also records each local step: its client, its number within J, loss
    and accuracy of its batch before the step, and the seconds that it took.

    It takes the same steps to the bit. A checkpoint inside a round holds the profile too.
    """

    def step_profile(self) -> list[np.ndarray]:
        """Client, step number, loss and accuracy of the batch, and seconds of each local step of
        the last call of `train`: one table (step, column)."""
        return [_table(self._done).numpy()]

    def run(
        self,
        work: LocalWork,
        optimizer: LocalOptimizer,
        anchor: Sequence[Tensor],
        after_step: AfterStep | None,
        resumable: ResumableCall,
    ) -> Tensor:
        """Do one client's work and record the loss, accuracy and time of each step."""
        self._steps: list[Tensor] = []

        def note() -> None:
            if after_step is not None:
                after_step()
            loss = float(self._loss_of_batch)  # waits for a GPU
            seconds = time.perf_counter() - self._started
            step = work.begin + len(self._steps)
            noted = [work.client, step, loss, float(self._accuracy_of_batch), seconds]
            self._steps.append(torch.tensor(noted, dtype=torch.float64))

        losses = super().run(work, optimizer, anchor, note, resumable)
        self._done += self._steps
        self._steps = []
        return losses

    def _backward(
        self,
        inputs: Tensor,
        targets: Tensor,
        statistics: Tensor,
        bias: Tensor,
        anchor: Sequence[Tensor],
    ) -> Tensor:
        self._started = time.perf_counter()
        outputs = self.model(inputs)
        loss = self._loss(outputs, targets, statistics, bias, anchor)
        loss.backward()
        self._loss_of_batch = loss.detach()
        self._accuracy_of_batch = (outputs.detach().argmax(dim=1) == targets).double().mean()
        return self._loss_of_batch

    def _load_finished(
        self, resumable: ResumableCall, stacked: Weights
    ) -> tuple[list[Tensor], list[int]]:
        self._done = list(resumable.finished.get("profile", torch.empty(0, NOTED)).cpu().unbind())
        return super()._load_finished(resumable, stacked)

    def _finished_collector(
        self, stacked: Weights, losses: list[Tensor], steps: list[int]
    ) -> Collect:
        collect, done = super()._finished_collector(stacked, losses, steps), self._done
        return lambda: collect() | {"profile": _table(done)}

    def _current_state(self, optimizer: LocalOptimizer, losses: list[Tensor]) -> Weights:
        return super()._current_state(optimizer, losses) | {"profile": torch.stack(self._steps)}

    def _resume_client(self, resumable: ResumableCall, optimizer: LocalOptimizer) -> list[Tensor]:
        if "profile" in resumable.current:
            self._steps = list(resumable.current["profile"].cpu().unbind())
        return super()._resume_client(resumable, optimizer)


def _table(notes: Sequence[Tensor]) -> Tensor:
    """Stack the rows of steps into a table."""
    return torch.stack(list(notes)) if notes else torch.empty(0, NOTED, dtype=torch.float64)
