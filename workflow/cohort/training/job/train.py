"""One cell as a job, from its plan file to its record: lease, GPU, checkpoints, publication."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

from cohort.core.errors import UserError
from cohort.core.paths import state_folder
from cohort.records.record import FORMAT, Record, is_valid, write
from cohort.training.cell import Cell, read_cell
from cohort.training.contract.mistakes import locate_errors
from cohort.training.cursor import Cursor
from cohort.training.evaluation import correct_by_class, evaluate, fingerprint
from cohort.training.job import checkpoint
from cohort.training.job.gpu_slots import acquire_device
from cohort.training.job.lease import (
    CHECKPOINT,
    FINISHED,
    LEASE,
    PREVIOUS,
    lease,
    publish,
    tidy,
)
from cohort.training.job.loading import load_task
from cohort.training.job.precision import set_up
from cohort.training.job.progress import LogLines, Watch, progress_text
from cohort.training.job.provenance import describe_session, provenance
from cohort.training.rounds import Rounds
from cohort.training.state import RunState
from cohort.training.task import Task
from cohort.training.trainers import choose_trainer
from cohort.training.updates import Weights

PATIENCE_SECONDS = 10  # from a signal until a run that cannot be saved in time is given up


def train(
    plan: str | Path,
    record: str | Path,
    *,
    device: str = "auto",
    trainer: str = "auto",
    checkpoint_seconds: float = 60.0,
    jobs_per_gpu: int = 1,
    until: int | None = None,
    watch: Watch | None = None,
) -> None:
    """Train a cell, from its checkpoint if there is one, and publish its record.

    With `until`, stop at a checkpoint after that round.
    """
    cell = read_cell(plan)
    folder = state_folder(record)
    with lease(
        folder,
        waiting=lambda: print("another process trains this cell: waiting for it", flush=True),
    ):
        if is_valid(record, cell.digest):  # another process has trained it meanwhile
            print(f"record {record}", flush=True)
            return
        tidy(folder, LEASE, CHECKPOINT, PREVIOUS, FINISHED)
        finished = folder / FINISHED
        if not is_valid(finished, cell.digest):
            finished.unlink(missing_ok=True)
            with acquire_device(device, jobs_per_gpu) as where:
                run = Run.begin(cell, folder / CHECKPOINT, where, trainer)
                watch = watch or LogLines(run.last_round, cell.digest)
                run.train(checkpoint_seconds, until or run.last_round, watch)
                if not run.is_over:
                    return
                write(finished, run.record())
        publish(finished, record)
        tidy(folder, LEASE, FINISHED)
        print(f"record {record}", flush=True)


class Stopped(BaseException):  # no error, so that no component that handles errors catches it
    """A signal stopped the run, and a checkpoint inside the round was saved."""


class GivenUp(BaseException):
    """A signal came, and for `PATIENCE_SECONDS` the run reached no point from which to resume."""


@dataclass
class Run:
    """A cell in training: its task, its state, and where checkpoints go."""

    task: Task
    rounds: Rounds
    device: torch.device
    state: RunState
    cursor: Weights
    checkpoint: Path

    @classmethod
    def begin(cls, cell: Cell, path: Path, device: torch.device, trainer: str) -> Run:
        """Resume a run from the checkpoint at `path`, with its trainer, or begin the run."""
        with locate_errors(cell.settings.strategy, 0):  # the user's model may fail
            task = load_task(cell, device)
        set_up(task.settings.precision, device)
        begun = task.procedure.begin(task)
        state, cursor = checkpoint.load(path, cell.digest, begun, device) or (begun, {})
        if state.sessions:
            trainer = state.sessions[-1]["trainer"]
        trainer, reason = choose_trainer(trainer, device, task)
        task = replace(task, trainer=trainer)
        if reason:
            print(f"trained by plain PyTorch: {reason}", flush=True)
        state.sessions.append(describe_session(device, task.trainer, state.round))
        beginning = f"resume at round {state.round}" if state.round else "start at round 0"
        beginning = f"resume inside round {state.round + 1}" if cursor else beginning
        print(f"{beginning}: {cell.path}", flush=True)
        rounds = task.procedure.rounds_of(task)
        return cls(task, rounds, device, state, cursor, path)

    @property
    def last_round(self) -> int:
        """The number of rounds of the whole cell."""
        return self.task.settings.rounds

    @property
    def is_over(self) -> bool:
        """Whether no round is left to play."""
        return self.state.diverged or self.state.round == self.last_round

    def train(self, checkpoint_seconds: float, until: int, watch: Watch) -> None:
        """Play rounds until the end, round `until` or a signal. The state is saved now and then,
        inside rounds too, and before stopping."""
        if self.is_over or self.state.round >= until:
            return
        with _stop_signals() as signals:
            clock = _Clock(checkpoint_seconds)
            cursor = Cursor(
                self.cursor,
                is_due=lambda: bool(signals) or clock.is_due(),
                write=lambda tensors: self._save_inside(tensors, clock, signals),
            )
            try:
                for state in self.rounds.run(self.state, cursor):
                    self.state = state
                    watch(self.state)
                    stop = not self.is_over and (bool(signals) or self.state.round == until)
                    if stop or clock.is_due():
                        checkpoint.save(self.checkpoint, self.state, self.task.digest)
                        clock.restart()
                    if stop:
                        break
            except GivenUp:
                with contextlib.suppress(Stopped):
                    cursor.save()
                raise self._stop_error(signals, f"inside round {self.state.round + 1}") from None
            except Stopped:
                raise self._stop_error(signals, f"inside round {self.state.round + 1}") from None
            if signals and not self.is_over:
                raise self._stop_error(signals, "at a checkpoint")
            if not self.is_over:
                print(
                    f"stopped at a checkpoint: {progress_text(self.state, self.last_round)}",
                    flush=True,
                )

    def _save_inside(self, cursor: Weights, clock: _Clock, signals: list[int]) -> None:
        """Save the state before the current round, with the cursor inside the round."""
        signal.alarm(0)
        if len(self.state.history.cohorts) == self.state.round:  # not while a round is being closed
            checkpoint.save(self.checkpoint, self.state, self.task.digest, cursor)
            print(f"saved inside round {self.state.round + 1}", flush=True)
        clock.restart()
        if signals:
            raise Stopped

    def _stop_error(self, signals: list[int], where: str) -> UserError:
        name, progress = signal.Signals(signals[0]).name, progress_text(self.state, self.last_round)
        return UserError(f"stopped {where}: {progress}, by signal {name}; start again to resume")

    def record(self) -> Record:
        """Make the record of a run that is over. The final model is evaluated on each client's own
        training samples, and on the test samples class by class."""
        task, state = self.task, self.state
        rows = [torch.from_numpy(indices).to(self.device) for indices in task.shards.indices]
        network = self.rounds.network(state.round)
        results = [
            evaluate(network, state.weights, task.train_samples, indices, plain=task.plain)
            for indices in rows
        ]
        tested, right = correct_by_class(
            network,
            state.weights,
            task.test_samples,
            task.test,
            task.classes,
            plain=task.plain,
        )
        header = {
            "format": FORMAT,
            "digest": task.digest,
            "status": "diverged" if state.diverged else "done",
            "settings": task.plain_settings(),
            "science": task.science,
            "weights_sha256": fingerprint(state.weights),
            "provenance": provenance(self.device, state.sessions, task.procedure.requires),
        }
        clients = {
            "size": task.sizes,
            "selected": np.bincount(
                np.concatenate(state.history.cohorts), minlength=task.settings.clients
            ),
            "loss": np.array([result.loss for result in results]),
            "accuracy": np.array([result.accuracy for result in results]),
            "label_counts": task.shards.label_counts,
            **self.rounds.client_arrays(state),
        }
        return Record(
            header,
            state.history,
            clients,
            {"tested": tested.cpu().numpy(), "right": right.cpu().numpy()},
        )


class _Clock:
    """Tells when the next checkpoint is due."""

    def __init__(self, seconds: float):
        self.seconds, self.started = seconds, time.monotonic()

    def is_due(self) -> bool:
        return time.monotonic() - self.started >= self.seconds

    def restart(self) -> None:
        self.started = time.monotonic()


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM instead of dying of them, so that the run is saved at the next
    point from which it can resume. SLURM warns by SIGTERM and kills soon after, so if no such point
    is reached in time (within a long evaluation), raise `GivenUp`.

    Further signals change nothing, not even once the block is left: the process is ending.
    """
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if not caught:
            signal.alarm(PATIENCE_SECONDS)
        caught.append(number)

    def give_up(number: int, frame: FrameType | None) -> None:
        raise GivenUp

    with ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            stack.callback(_restore_handler, number, signal.signal(number, note), unless=caught)
        stack.callback(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, give_up))
        stack.callback(signal.alarm, 0)
        yield caught


def _restore_handler(number: int, handler: Any, unless: list[int]) -> None:
    if not unless:
        signal.signal(number, handler)
