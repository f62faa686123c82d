"""One cell, from its plan file to its record: lease, resume, rounds, checkpoints, publication."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import torch

from cohort.cell import Planned, frozen
from cohort.errors import UserError
from cohort.files import replacing
from cohort.records.record import FORMAT, Record, is_valid, write
from cohort.training import checkpoint
from cohort.training.evaluation import evaluate, fingerprint
from cohort.training.lease import CHECKPOINT, FINISHED, lease, state_folder
from cohort.training.procedures import PROCEDURES
from cohort.training.progress import LogLines, Watch, describe
from cohort.training.provenance import provenance, session
from cohort.training.serial import SerialTrainer
from cohort.training.state import RunState
from cohort.training.task import Task, load_task


def train(
    plan: str | Path,
    record: str | Path,
    *,
    device: str = "auto",
    checkpoint_seconds: float = 60.0,
    until: int | None = None,
    watch: Watch | None = None,
) -> None:
    """Train a cell, from its checkpoint where there is one, and publish its record. With `until`, stop at a checkpoint after that round."""
    planned = frozen(plan)
    folder = state_folder(record)
    with lease(folder, waiting=lambda: print("another process trains this cell: waiting for it", flush=True)):
        finished = folder / FINISHED
        if not is_valid(finished, planned):
            finished.unlink(missing_ok=True)
            task, where = _set_up(planned, device)
            state = _resume(task, planned, folder, where)
            with _stop_signals() as signals:
                if not _train(task, planned, state, folder, checkpoint_seconds, until, watch or LogLines(task.settings.rounds), signals):
                    return
            write(finished, _record(task, planned, state, where))
        publish(finished, record)
        (folder / CHECKPOINT).unlink(missing_ok=True)
        print(f"record {record}", flush=True)


def publish(finished: Path, record: str | Path) -> None:
    """Put a finished record in its place; both names stay until the driver has seen it there."""
    with replacing(record) as temporary:
        try:
            os.link(finished, temporary)
        except OSError:
            shutil.copyfile(finished, temporary)


def _set_up(planned: Planned, device: str) -> tuple[Task, torch.device]:
    torch.set_num_threads(1)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what deterministic matrix products on a GPU ask for
    torch.use_deterministic_algorithms(True)
    where = torch.device("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else torch.device(device)
    return load_task(planned, where), where


def _resume(task: Task, planned: Planned, folder: Path, device: torch.device) -> RunState:
    state = checkpoint.load(folder / CHECKPOINT, planned.digest, device)
    if state is None:
        state = PROCEDURES[task.settings.procedure]().begin(task)
    state.sessions.append(session(device, state.round))
    print(f"{'resume' if state.round else 'start'} at round {state.round}: {planned.path}", flush=True)
    return state


def _train(
    task: Task,
    planned: Planned,
    state: RunState,
    folder: Path,
    checkpoint_seconds: float,
    until: int | None,
    watch: Watch,
    signals: list[int],
) -> bool:
    saved = time.monotonic()
    if not state.diverged and state.round < (until or task.settings.rounds):
        for _ in PROCEDURES[task.settings.procedure]().rounds(task, state):
            watch(state)
            stop = bool(signals) or state.round == until
            if stop or time.monotonic() - saved >= checkpoint_seconds:
                checkpoint.save(folder / CHECKPOINT, state, planned.digest)
                saved = time.monotonic()
            if stop:
                break
    if state.diverged or state.round == task.settings.rounds:
        return True
    where = f"stopped at a checkpoint: {describe(state, task.settings.rounds)}"
    if signals:
        raise UserError(f"{where}, by signal {signal.Signals(signals[0]).name}; the next start goes on from there")
    print(where, flush=True)
    return False


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM instead of dying of them, so that the round in hand is finished and saved."""
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    with ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            stack.callback(signal.signal, number, signal.signal(number, note))
        yield caught


def _record(task: Task, planned: Planned, state: RunState, device: torch.device) -> Record:
    """The record of a run that ended. Clients are judged by the final model on their own training samples."""
    rows = [torch.from_numpy(indices).to(device) for indices in task.shards.indices]
    results = [evaluate(task.model, state.weights, task.train_samples, indices) for indices in rows]
    selected = np.bincount(np.concatenate(state.history.cohorts), minlength=task.settings.clients)
    header = {
        "format": FORMAT,
        "digest": planned.digest,
        "status": "diverged" if state.diverged else "done",
        "settings": planned.settings,
        "science": planned.science,
        "weights_sha256": fingerprint(state.weights),
        "provenance": provenance(device, state.sessions, SerialTrainer.name),
    }
    clients = {
        "size": task.sizes,
        "selected": selected,
        "loss": np.array([loss for loss, _ in results]),
        "accuracy": np.array([accuracy for _, accuracy in results]),
        "label_counts": task.shards.label_counts,
    }
    return Record(header, state.history, clients)
