"""One cell as a job, from its plan file to its record: lease, GPU, checkpoints, publication."""

import contextlib
import hashlib
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any, Self

import numpy as np
import torch

import cohort
from cohort.core import UserError, duration_text, lazy, process, shipped, user_files
from cohort.core.paths import plan_file, state_folder, train_log
from cohort.partition import parse_partition
from cohort.records.record import FORMAT, Record, is_valid, write
from cohort.training import contract, evaluation, ledger, updates
from cohort.training.cell import Cell, read_cell
from cohort.training.job import checkpoint, lease, machine, stacking
from cohort.training.job.stacking import GivenUp, Member, Stopped
from cohort.training.rounds import Rounds
from cohort.training.task import RunState, Task, load_task
from cohort.training.trainers import native, serial, stacked
from cohort.training.trainers.trainer import Trainer

rich = lazy("rich.progress")  # only needed in a terminal
Watch = Callable[[RunState], None]
Slot = contextlib.AbstractContextManager[torch.device]
_TRAINERS: tuple[type[Trainer], ...]
_TRAINERS = serial.SerialTrainer, native.NativeTrainer, stacked.StackedTrainer
TRAINERS = {trainer.name: trainer for trainer in _TRAINERS}
# settings in which the cells of a stack agree, besides their data set
COMMON = ("model", "J", "batch", "momentum", "weight_decay", "clip", "augmentation", "precision")
PROGRESS_SECONDS = 10.0  # between two lines of a log
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
    """Train a cell, from its checkpoint if there is one, and publish its record; with `until`, stop
    at a checkpoint after that round. With several jobs to a GPU, or in a SLURM job of several
    cells, the batched trainer trains compatible cells in one process."""
    cell = read_cell(plan)
    slot: Slot = machine.acquire_device(device, jobs_per_gpu)
    options: dict[str, Any] = {"trainer": trainer, "checkpoint_seconds": checkpoint_seconds}
    group = {*os.environ.get(lease.GROUP, "").split()} - {cell.digest}
    is_alone = until is not None or (jobs_per_gpu == 1 and not group)
    if is_alone or lease.is_held(state_folder(record)) or is_done(cell, record):
        train_cell(cell, record, slot, **options, until=until, watch=watch)
        return
    with slot as where:
        slot = contextlib.nullcontext(where)
        folder = stack_folder(cell, record, where, trainer)
        done = partial(is_done, cell, record)
        host_lock = folder and stacking.become_host(folder, cell.digest, done)
        if folder is None or host_lock is None:
            train_cell(cell, record, slot, **options, watch=watch)
            return

        def train_member(member: Member) -> None:
            if not member.is_guest:
                train_cell(cell, record, slot, **options, watch=watch, member=member)
                return
            guest = read_cell(plan_file(member.name))
            is_free = not lease.is_held(state_folder(guest.path))
            if is_free and stack_folder(guest, guest.path, where, trainer) == folder:
                with process.log_output(train_log(guest.path)):
                    train_cell(guest, guest.path, slot, **options, member=member)

        machine.set_up(cell.settings.precision, where)
        room, signals = max(jobs_per_gpu, len(group) + 1), list[int]()
        with host_lock, _stop_signals(signals):
            stacking.Host(folder, train_member, room, group, signals).run(cell.digest)


def train_cell(
    cell: Cell,
    record: str | Path,
    slot: Slot,
    *,
    trainer: str,
    checkpoint_seconds: float,
    until: int | None = None,
    watch: Watch | None = None,
    member: Member | None = None,
) -> None:
    """Train a cell under its lease, on the device of `slot`, alone or as a member of a stack, and
    publish its record, or leave that to the cell's own process."""
    folder = state_folder(record)
    waiting = partial(print, "another process trains this cell: waiting for it", flush=True)
    with lease.lease(folder, waiting):
        if is_valid(record, cell.digest):  # another process has trained it meanwhile
            print(f"record {record}", flush=True)
            return
        lease.tidy(folder, lease.LEASE, lease.CHECKPOINT, lease.PREVIOUS, lease.FINISHED)
        finished = folder / lease.FINISHED
        if not is_valid(finished, cell.digest):
            finished.unlink(missing_ok=True)
            with slot as where:
                run = Run.begin(cell, folder / lease.CHECKPOINT, where, trainer, member)
                watch = watch or LogLines(run.last_round, cell.digest)
                run.train(checkpoint_seconds, until or run.last_round, watch)
                if not run.is_over:
                    return
                write(finished, run.record())
        if member is not None and member.is_guest:
            return
        lease.publish(finished, record)
        lease.tidy(folder, lease.LEASE, lease.FINISHED)
        print(f"record {record}", flush=True)


def is_done(cell: Cell, record: str | Path) -> bool:
    """Whether a cell has its record, or only lacks its publication."""
    finished = state_folder(record) / lease.FINISHED
    return is_valid(record, cell.digest) or is_valid(finished, cell.digest)


def stack_folder(cell: Cell, record: str | Path, device: torch.device, trainer: str) -> Path | None:
    """The folder of lock files by which this machine's processes find each other to train this cell
    in one stack; None if it will not be trained by the batched trainer."""
    sessions = lease.saved_header(state_folder(record)).get("sessions")
    trainer = sessions[-1]["trainer"] if sessions else trainer
    if (trainer, device.type) != ("auto", "cuda") and trainer != stacked.StackedTrainer.name:
        return None
    with contract.locate_errors(cell.settings.strategy, 0):
        task = load_task(cell, torch.device("cpu"))
    if choose_trainer(trainer, device, task)[0] is not stacked.StackedTrainer:
        return None
    gpu = machine.visible_gpus()[device.index] if device.type == "cuda" else "cpu"
    width = min(cell.settings.batch, int(task.sizes.max()))
    common = [getattr(cell.settings, key) for key in COMMON], width, cell.inputs["data"]
    here = gpu, str(Path.cwd()), os.environ.get("SLURM_JOB_ID")
    key = hashlib.sha256(json.dumps([common, here]).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir(), f"cohort-stacks-{os.getuid()}", key)


def choose_trainer(requested: str, device: torch.device, task: Task) -> tuple[type[Trainer], str]:
    """Return the requested trainer and "", or the serial one and why the requested one cannot
    train. `auto` requests the stacked trainer on a GPU and the native one on a CPU."""
    if requested == "auto":
        requested = (stacked.StackedTrainer if device.type == "cuda" else native.NativeTrainer).name
    reason = TRAINERS[requested].unsupported_reason(task)
    if requested not in task.procedure.usable_trainers():
        reason = f"procedure {task.procedure} has no {requested} training"
    return (serial.SerialTrainer if reason else TRAINERS[requested]), reason


@dataclass
class Run:
    """A cell in training: its rounds, its state, and where checkpoints go."""

    rounds: Rounds
    state: RunState
    cursor: updates.Weights
    checkpoint: Path
    signals: list[int] = field(default_factory=list)
    saved_at: float = field(default_factory=time.monotonic)

    @classmethod
    def begin(
        cls, cell: Cell, path: Path, device: torch.device, trainer: str, member: Member | None
    ) -> Self:
        """Resume a run from the checkpoint at `path`, with its trainer, or begin it with the
        requested one. A member of a stack is trained by its host."""
        with contract.locate_errors(cell.settings.strategy, 0):  # the user's model may fail
            task = load_task(cell, device)
        machine.set_up(task.settings.precision, device)
        begun = task.procedure.begin(task)
        state, cursor = checkpoint.load(path, cell.digest, begun, device) or (begun, {})
        if state.sessions:
            trainer = state.sessions[-1]["trainer"]
        kind, reason = choose_trainer(trainer, device, task)
        if member is not None and kind is stacked.StackedTrainer:
            kind = member.trainer()
        task = replace(task, trainer=kind)
        if reason:
            print(f"trained by plain PyTorch: {reason}", flush=True)
        parse_partition(task.settings.partition)  # the session names the user's own, once imported
        state.sessions.append(describe_session(device, kind.name, state.round))
        beginning = f"resume at round {state.round}" if state.round else "start at round 0"
        beginning = f"resume inside round {state.round + 1}" if cursor else beginning
        print(f"{beginning}: {cell.path}", flush=True)
        rounds, signals = task.procedure.rounds_of(task), member.signals if member else []
        return cls(rounds, state, cursor, path, signals)

    @property
    def last_round(self) -> int:
        """The number of rounds of the whole cell."""
        return self.rounds.task.settings.rounds

    @property
    def is_over(self) -> bool:
        """Whether no round is left to play."""
        return self.state.diverged or self.state.round == self.last_round

    def train(self, checkpoint_seconds: float, until: int, watch: Watch) -> None:
        """Play rounds until the end, round `until` or a signal. The state is saved now and then,
        inside rounds too, and before stopping."""
        if self.is_over or self.state.round >= until:
            return

        def is_due() -> bool:
            return bool(self.signals) or time.monotonic() - self.saved_at >= checkpoint_seconds

        cursor, where = ledger.Cursor(self.cursor, is_due, self._save_inside), "at a checkpoint"
        is_main = threading.current_thread() is threading.main_thread()
        with _stop_signals(self.signals) if is_main else contextlib.nullcontext():
            try:
                for state in self.rounds.run(self.state, cursor):
                    self.state = state
                    watch(state)
                    stop = not self.is_over and (bool(self.signals) or state.round == until)
                    if stop or is_due():
                        self._save()
                    if stop:
                        break
            except Stopped as stopped:
                where = f"inside round {self.state.round + 1}"
                if isinstance(stopped, GivenUp):
                    with contextlib.suppress(Stopped):
                        cursor.save()
        if self.is_over:
            return
        progress = progress_text(self.state, self.last_round)
        if self.signals:
            name = signal.Signals(self.signals[0]).name
            raise UserError(f"stopped {where}: {progress}, by signal {name}; start again to resume")
        print(f"stopped {where}: {progress}", flush=True)

    def _save(self, cursor: updates.Weights | None = None) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.alarm(0)
        checkpoint.save(self.checkpoint, self.state, self.rounds.task.digest, cursor)
        self.saved_at = time.monotonic()

    def _save_inside(self, cursor: updates.Weights) -> None:
        """Save the state before the current round, with the clients that are done in it."""
        if len(self.state.history.cohorts) == self.state.round:  # not while a round is being closed
            self._save(cursor)
            print(f"saved inside round {self.state.round + 1}", flush=True)
        if self.signals:
            raise Stopped

    def record(self) -> Record:
        """Make the record of a run that is over. The final model is evaluated on each client's own
        training samples, and on the test samples class by class."""
        print("evaluating the final model on each client's training samples", flush=True)
        task, state = self.rounds.task, self.state
        device, plain, network = task.test.device, task.plain, self.rounds.network(state.round)
        model = network, state.weights, task.train_samples
        rows = (torch.from_numpy(indices).to(device) for indices in task.shards.indices)
        results = [evaluation.evaluate(*model, indices, plain=plain) for indices in rows]
        tests = state.weights, task.test_samples, task.test, task.classes
        tested, right = evaluation.correct_by_class(network, *tests, plain)
        header = {
            "format": FORMAT,
            "digest": task.digest,
            "status": "diverged" if state.diverged else "done",
            "settings": task.plain_settings(),
            "science": task.science,
            "weights_sha256": evaluation.fingerprint(state.weights),
            "provenance": provenance(device, state, task.procedure.requires),
        }
        chosen = np.concatenate(state.history.cohorts)
        clients = {
            "size": task.sizes,
            "selected": np.bincount(chosen, minlength=task.settings.clients),
            "loss": np.array([result.loss for result in results]),
            "accuracy": np.array([result.accuracy for result in results]),
            "label_counts": task.shards.label_counts,
            **self.rounds.client_arrays(state),
        }
        classes = {"tested": tested.cpu().numpy(), "right": right.cpu().numpy()}
        return Record(header, state.history, clients, classes)


@contextlib.contextmanager
def _stop_signals(caught: list[int]) -> Iterator[None]:
    """Collect stop signals instead of dying of them, so that the run is saved after the client in
    progress. SLURM warns by SIGTERM and kills soon after, so if that takes too long, raise
    `GivenUp`. Further signals change nothing, even after the block: the process is ending."""

    def note(number: int, frame: FrameType | None) -> None:
        if not caught:
            signal.alarm(PATIENCE_SECONDS)
        caught.append(number)

    def give_up(number: int, frame: FrameType | None) -> None:
        raise GivenUp

    handlers = [(number, signal.signal(number, note)) for number in process.stop_signals()]
    alarm = signal.signal(signal.SIGALRM, give_up)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, alarm)
        if not caught:
            for number, handler in handlers:
                signal.signal(number, handler)


def describe_session(device: torch.device, trainer: str, from_round: int) -> dict[str, Any]:
    """Describe this process's work on a run, which begins or resumes at `from_round`."""
    is_gpu, versions = device.type == "cuda", _user_module_versions()
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "from_round": from_round,
        "device": torch.cuda.get_device_name(device) if is_gpu else machine.cpu_name(),
        "trainer": trainer,
        **({"my": versions} if versions else {}),
    }


def provenance(device: torch.device, state: RunState, package: str) -> dict[str, Any]:
    """The provenance for a record's header: versions, commit, devices and sessions. `package` names
    a Python package that the procedure requires in addition to those of all runs, if any."""
    sessions = state.sessions
    # A file that was edited during the run counts as it was when the session began.
    user_modules = _user_module_versions() | sessions[-1].get("my", {})
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if device.type == "cuda":
        memory += torch.cuda.max_memory_allocated(device) / 2**20
    return {
        "versions": {"cohort": cohort.__version__, "python": platform.python_version()}
        | {name: version(name) for name in ("torch", "numpy", "h5py", package) if name},
        "commit": _commit(),
        **({"my": user_modules} if user_modules else {}),
        "trainer": sessions[-1]["trainer"],
        "devices": list(dict.fromkeys(item["device"] for item in sessions)),
        "sessions": sessions,
        "peak_memory_mb": memory,
    }


def _user_module_versions() -> dict[str, str]:
    """The SHA-256 of the user's modules that this process has imported, by module."""
    return {module: user_files.version_of(module) for module in user_files.loaded_modules()}


def _commit() -> str:
    """The commit of the package's repository; `unknown` if installed, maybe in another one."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL, "text": True}
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        if not shipped.IS_INSTALLED:
            return subprocess.check_output(command, cwd=Path(__file__).parent, **quiet).strip()
    return "unknown"


class LogLines:
    """Prints a run's progress: a line at most every ten seconds, and one after the last round."""

    def __init__(self, rounds: int, name: str):
        self.rounds, self.name = rounds, name
        self.started = self.printed = time.monotonic()
        self.first: int | None = None

    def __call__(self, state: RunState) -> None:
        self.first = state.round - 1 if self.first is None else self.first
        now = time.monotonic()
        if now - self.printed >= PROGRESS_SECONDS or state.round == self.rounds:
            self.printed = now
            speed = (state.round - self.first) / max(now - self.started, 1e-9)
            remaining = duration_text((self.rounds - state.round) / speed)
            text = f"{self.name}  {progress_text(state, self.rounds)}  {speed:.3g} rounds/s"
            print(f"{text}  {remaining} left", flush=True)


@contextlib.contextmanager
def progress_display(rounds: int, title: str) -> Iterator[Watch]:
    """Show a live bar on a terminal, else print lines; yield the function to call every round."""
    if not sys.stdout.isatty():
        yield LogLines(rounds, title)
        return
    columns = "{task.description}", rich.BarColumn(), rich.TimeRemainingColumn()
    with rich.Progress(*columns) as progress:
        bar = progress.add_task(title, total=rounds)

        def watch(state: RunState) -> None:
            text = f"{title}  {progress_text(state, rounds)}"
            progress.update(bar, completed=state.round, description=text)

        yield watch


def progress_text(state: RunState, rounds: int) -> str:
    """The current round of a run and its latest evaluation as text."""
    if not state.history.metrics.get("test_accuracy"):
        return f"round {state.round}/{rounds}  not evaluated yet"
    accuracy, loss = (state.history.last(f"test_{name}") for name in ("accuracy", "loss"))
    return f"round {state.round}/{rounds}  test accuracy {accuracy:.4f}  loss {loss:.4f}"
