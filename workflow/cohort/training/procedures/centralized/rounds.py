"""Rounds of centralized training: epochs with one optimizer and one schedule."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import ClassVar

import numpy as np

from cohort.training.ledger import Ledger
from cohort.training.procedures.procedure import Procedure
from cohort.training.rounds import Rounds
from cohort.training.state import RunState
from cohort.training.task import Task
from cohort.training.trainers.local_work import LocalWork, local_steps
from cohort.training.trainers.optimizers import (
    load_optimizer_state,
    optimizer_state,
    torch_optimizer,
)
from cohort.training.trainers.serial import SerialTrainer


class CentralizedRounds(Rounds):
    """Rounds that are epochs of one client with all data, with one optimizer and one learning rate
    schedule for all of them."""

    costs: ClassVar[tuple[str, ...]] = ("client_steps",)

    def __init__(self, procedure: Procedure, task: Task):
        super().__init__(task)
        settings, data = task.settings, (task.objective, task.train_samples, task.shards.indices)
        self.trainer = SerialTrainer(task.model, settings, *data)
        self.batches = local_steps(self.epoch_size(), settings)[1]  # in an epoch
        self.optimizer = torch_optimizer(settings, task.model.parameters(), settings.lr)
        self.schedule = task.schedule.build(self.optimizer, settings.rounds, self.batches)
        self.scheduled = 0  # how often the schedule has stepped

    def epoch_size(self) -> int:
        """The number of samples in an epoch."""
        return len(self.task.shards.indices[0])

    def work(self, state: RunState, round: int, ledger: Ledger) -> LocalWork:
        """Enter an epoch's cohort and costs into the ledger; return its samples as local work."""
        (work,) = self.trainer.full_work(state.weights, [0], round)
        ledger.cohort = np.array([0])
        ledger.stepped(local_steps(len(work.samples), self.task.settings)[0])
        return work

    def begin(self) -> RunState:
        return RunState(self.task.initial_weights(), {}, {})

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        model = self.task.model
        model.load_state_dict(state.weights)
        load_optimizer_state(self.optimizer, model, state.server)
        self._advance_schedule(state)
        ledger.measured(learning_rate=self.optimizer.param_groups[0]["lr"])
        work = self.work(state, round, ledger)
        with ledger.timed("training"):
            losses = self.trainer.run(work, self.optimizer, (), self._after_step)
        ledger.measured(train_loss=float(losses.mean()))
        weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        return replace(state, weights=weights, server=optimizer_state(self.optimizer, model))

    def _after_step(self) -> None:
        if self.task.schedule.by_batch:
            self.schedule.step()
            self.scheduled += 1

    def _advance_schedule(self, state: RunState) -> None:
        """Bring the learning rate schedule to where the state stands.

        A schedule has no state of its own to save: it is called again as often as before, with the
        validation losses of the history.
        """
        schedule, losses = self.task.schedule, state.history.metrics.get("validation_loss", [])
        target = state.round * (self.batches if schedule.by_batch else 1)
        with warnings.catch_warnings():
            # torch warns of a schedule that steps before the optimizer, as it does in a new process
            warnings.simplefilter("ignore", UserWarning)
            for step in range(self.scheduled, target):
                self.schedule.step(*([losses[step][1]] if schedule.watches else []))
        self.scheduled = target
