"""One cell, from its plan file to its record: lease, card, resume, rounds, checkpoints, publication."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import numpy as np
import torch

from cohort.cell.planned import Planned, frozen
from cohort.core.errors import UserError
from cohort.core.layout import state_folder
from cohort.records.record import FORMAT, Record, is_valid, write
from cohort.training.evaluation import evaluate, fingerprint, right_by_class
from cohort.training.job import checkpoint
from cohort.training.job.gpus import acquire_device
from cohort.training.job.lease import (
    CHECKPOINT,
    FINISHED,
    LEASE,
    PREVIOUS,
    lease,
    publish,
    tidy,
)
from cohort.training.job.progress import LogLines, Watch, describe
from cohort.training.job.provenance import provenance, session
from cohort.training.precision import set_up
from cohort.training.procedures import Procedure, parse_procedure
from cohort.training.state import RunState
from cohort.training.task import Task, load_task
from cohort.training.trainers import trainer_for
from cohort.training.trainers.serial import SerialTrainer

PATIENCE_SECONDS = 10  # that a signal leaves to the round in hand


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
    """Train a cell, from its checkpoint where there is one, and publish its record. With `until`, stop at a checkpoint after that round."""
    planned = frozen(plan)
    folder = state_folder(record)
    with lease(
        folder,
        waiting=lambda: print("another process trains this cell: waiting for it", flush=True),
    ):
        tidy(folder, LEASE, CHECKPOINT, PREVIOUS, FINISHED)
        finished = folder / FINISHED
        if not is_valid(finished, planned):
            finished.unlink(missing_ok=True)
            with acquire_device(device, jobs_per_gpu) as where:
                run = Run.begin(planned, folder / CHECKPOINT, where, trainer)
                run.train(checkpoint_seconds, until or run.rounds, watch or LogLines(run.rounds))
                if not run.is_over:
                    return
                write(finished, run.record())
        publish(finished, record)
        tidy(folder, LEASE, FINISHED)
        print(f"record {record}", flush=True)


@dataclass
class Run:
    """A cell at work: what it works on, where it stands, where it saves."""

    planned: Planned
    task: Task
    device: torch.device
    state: RunState
    checkpoint: Path

    @classmethod
    def begin(cls, planned: Planned, path: Path, device: torch.device, trainer: str) -> Run:
        """From the checkpoint at `path`, with the trainer that it names, or from nothing."""
        task = load_task(planned, device)
        set_up(task.settings.precision, device)
        begun = parse_procedure(task.settings.procedure).begin(task)
        state = checkpoint.load(path, planned.digest, begun, device) or begun
        if state.sessions:
            trainer = state.sessions[-1].get(
                "trainer", SerialTrainer.name
            )  # the first versions had no other and did not say so
        task = replace(task, trainer=trainer_for(trainer, device, task.model, task.settings))
        state.sessions.append(session(device, task.trainer, state.round))
        print(
            f"{'resume' if state.round else 'start'} at round {state.round}: {planned.path}",
            flush=True,
        )
        return cls(planned, task, device, state, path)

    @property
    def procedure(self) -> Procedure:
        """How it goes."""
        return parse_procedure(self.task.settings.procedure)

    @property
    def rounds(self) -> int:
        """How many rounds the whole cell has."""
        return self.task.settings.rounds

    @property
    def is_over(self) -> bool:
        """Whether no round is left to do."""
        return self.state.diverged or self.state.round == self.rounds

    def train(self, checkpoint_seconds: float, until: int, watch: Watch) -> None:
        """Rounds until the end, until round `until` or until a signal says stop; saved on the way and before stopping."""
        if self.is_over or self.state.round >= until:
            return
        saved = time.monotonic()
        with _stop_signals() as signals:
            for _ in self.procedure.rounds(self.task, self.state):
                watch(self.state)
                stop = not self.is_over and (bool(signals) or self.state.round == until)
                if stop or time.monotonic() - saved >= checkpoint_seconds:
                    checkpoint.save(self.checkpoint, self.state, self.planned.digest)
                    saved = time.monotonic()
                if stop:
                    where = f"stopped at a checkpoint: {describe(self.state, self.rounds)}"
                    if signals:
                        raise UserError(
                            f"{where}, by signal {signal.Signals(signals[0]).name}; the next start goes on from there"
                        )
                    print(where, flush=True)
                    break

    def record(self) -> Record:
        """What the run leaves. Clients are judged by the final model on their own training samples, classes on the test samples."""
        task, state = self.task, self.state
        rows = [torch.from_numpy(indices).to(self.device) for indices in task.shards.indices]
        network = self.procedure.network(task, state.round)
        results = [
            evaluate(network, state.weights, task.train_samples, indices) for indices in rows
        ]
        tested, right = right_by_class(
            network, state.weights, task.test_samples, task.test, task.classes
        )
        header = {
            "format": FORMAT,
            "digest": self.planned.digest,
            "status": "diverged" if state.diverged else "done",
            "settings": self.planned.settings,
            "science": self.planned.science,
            "weights_sha256": fingerprint(state.weights),
            "provenance": provenance(self.device, state.sessions),
        }
        clients = {
            "size": task.sizes,
            "selected": np.bincount(
                np.concatenate(state.history.cohorts), minlength=task.settings.clients
            ),
            "loss": np.array([result.loss for result in results]),
            "accuracy": np.array([result.accuracy for result in results]),
            "label_counts": task.shards.label_counts,
            **self.procedure.of_clients(state),
        }
        return Record(
            header,
            state.history,
            clients,
            {"tested": tested.cpu().numpy(), "right": right.cpu().numpy()},
        )


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM instead of dying of them, so that the round in hand is finished and saved, if that does not take long:
    SLURM warns by SIGTERM and kills soon after, and a preempted job that was killed is one that Snakemake waits for for ever."""
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        signal.alarm(PATIENCE_SECONDS)

    def give_up(number: int, frame: FrameType | None) -> None:
        said = f"by signal {signal.Signals(caught[0]).name}"
        raise UserError(
            f"stopped in the middle of a round, {said}; the next start goes on from the last checkpoint"
        )

    with ExitStack() as stack:
        for number, handler in (
            (signal.SIGINT, note),
            (signal.SIGTERM, note),
            (signal.SIGALRM, give_up),
        ):
            stack.callback(signal.signal, number, signal.signal(number, handler))
        stack.callback(signal.alarm, 0)
        yield caught
