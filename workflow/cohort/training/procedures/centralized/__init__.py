"""Centralized training: one model on everything, epoch after epoch. What federated runs are compared with."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cohort.cell.evaluations import is_evaluated
from cohort.training.procedures.procedure import Procedure
from cohort.training.schedules import parse_schedule

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from cohort.training.state import RunState
    from cohort.training.task import Task
    from cohort.training.updates import Weights


@dataclass(frozen=True, kw_only=True)
class Centralized(Procedure):
    """A round is an epoch of the only client, whose optimizer goes on from epoch to epoch and follows a schedule."""

    name: ClassVar[str] = "centralized"
    round_name: ClassVar[str] = "Epoch"

    def check(self, settings: Mapping[str, Any]) -> None:
        if (settings["clients"], settings["cohort"]) != (1, 1):
            raise ValueError(
                "trains one client that holds everything: clients and cohort must be 1"
            )
        if settings["participation"] != "full":
            raise ValueError(
                f"has one client, which cannot be missed: participation is '{settings['participation']}'; leave it out"
            )
        if parse_schedule(settings["schedule"]).watches and not settings["validation"]:
            raise ValueError(
                f"schedule '{settings['schedule']}' watches the loss on validation samples: validation must be at least 1"
            )

    def begin(self, task: Task) -> RunState:
        from cohort.training.state import RunState

        return RunState(task.initial_weights(), {}, {})

    def rounds(self, task: Task, state: RunState) -> Iterator[RunState]:
        from cohort.training.evaluation import all_finite, evaluate
        from cohort.training.optimizers import optimizer_for
        from cohort.training.trainers.base import local_steps
        from cohort.training.trainers.serial import SerialTrainer

        settings, history, model = task.settings, state.history, task.model
        trainer = SerialTrainer(
            model, settings, task.objective, task.train_samples, task.shards.indices
        )
        model.load_state_dict(state.weights)
        optimizer = optimizer_for(settings, model.parameters(), settings.lr)
        remember(optimizer, model, state.server)
        schedule = self._schedule(
            task, optimizer, local_steps(len(task.shards.indices[0]), settings)[1], state
        )
        for round in range(state.round + 1, settings.rounds + 1):
            started = time.perf_counter()
            history.add(round, learning_rate=optimizer.param_groups[0]["lr"])
            losses = trainer.steps(
                0, round, optimizer, after_step=schedule.step if task.schedule.by_batch else None
            )
            state.weights = {
                name: tensor.detach().clone() for name, tensor in model.state_dict().items()
            }
            state.server = memory(optimizer, model)
            state.round, state.diverged = round, not all_finite(state.weights)

            history.cohorts.append(np.array([0]))
            history.add(round, train_loss=float(losses.mean()))
            if len(task.validation):
                history.add(
                    round,
                    **evaluate(model, state.weights, task.train_samples, task.validation).of(
                        "validation"
                    ),
                )
            if (
                is_evaluated(settings.evaluate_every, round)
                or round == settings.rounds
                or state.diverged
            ):
                history.add(
                    round, **evaluate(model, state.weights, task.test_samples, task.test).of("test")
                )
            if not task.schedule.by_batch:
                schedule.step(*([history.last("validation_loss")] if task.schedule.watches else []))
            history.add_cost(round, client_steps=len(losses), seconds=time.perf_counter() - started)
            yield state
            if state.diverged:
                return

    def _schedule(self, task: Task, optimizer: Optimizer, batches: int, state: RunState) -> Any:
        """The schedule where it stands after the epochs that the state has behind it: it is told again what it was told then."""
        schedule = task.schedule.build(optimizer, task.settings.rounds, batches)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # torch misses the optimizer's steps, which another process took
            if task.schedule.watches:
                for _, loss in state.history.metrics["validation_loss"]:
                    schedule.step(loss)
            else:
                for _ in range(state.round * (batches if task.schedule.by_batch else 1)):
                    schedule.step()
        return schedule


def memory(optimizer: Optimizer, model: Any) -> Weights:
    """What an optimizer remembers of each parameter, as tensors that a checkpoint can hold."""
    import torch

    names = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{names[parameter]}/{key}": torch.as_tensor(value).clone()
        for parameter, facts in optimizer.state.items()
        for key, value in facts.items()
        if value is not None
    }


def remember(optimizer: Optimizer, model: Any, kept: Weights) -> None:
    """Give an optimizer its memory back."""
    parameters = dict(model.named_parameters())
    for path, value in kept.items():
        name, _, key = path.rpartition("/")
        optimizer.state[parameters[name]][key] = value.clone()
