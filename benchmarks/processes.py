"""Measured processes: workers that wait for each round, and commands started for each round. Each
sweep runs every variant once in random order, so that a busy machine slows all of them alike."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.protocol import GO, READY, SAVE, SAVED
from cohort.core.lazy import lazy

if TYPE_CHECKING:
    import psutil
else:
    psutil = lazy("psutil")  # only to measure memory

EXIT_TIMEOUT_SECONDS = 20  # before a worker is killed
SAMPLING_SECONDS = 0.05  # between two samples of memory
MB = 1e6


class Failed(Exception):
    """A variant's process failed; the message is the end of its log."""


@dataclass
class Workers:
    """Identical processes that speak benchmarks.protocol and stay alive between rounds.

    Each of n processes runs a round at the same time, so a round takes an n-th of that time.
    """

    commands: Sequence[Sequence[str]]
    environment: Mapping[str, str]
    log: Path
    folder: Path | None = None
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def __enter__(self) -> Workers:
        try:
            with self.log.open("a") as log:
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
                options: dict[str, Any] = {"cwd": self.folder, "env": self.environment} | pipes
                for command in self.commands:
                    process = subprocess.Popen(
                        command, text=True, start_new_session=True, **options
                    )
                    self.processes.append(process)
            self._expect(READY)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(EXIT_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def run(self) -> float:
        """Run a round in every process; return the seconds divided by the number of processes."""
        started = time.perf_counter()
        self._send(GO)
        self._expect(READY)
        return (time.perf_counter() - started) / len(self.processes)

    def answer(self, file: Path) -> np.ndarray:
        """Fetch the weights so far from the first process through `file`; all processes compute the
        same."""
        self._send(f"{SAVE} {file}", self.processes[:1])
        self._expect(SAVED, self.processes[:1])
        answer: np.ndarray = np.load(file)
        return answer

    def peak_mb(self) -> float:
        """Run a round and return its peak memory: all processes and children, shared pages once."""
        readings, done = [0.0], threading.Event()

        def sample() -> None:
            while not done.wait(SAMPLING_SECONDS):
                readings.append(sum(map(pss_mb, self.processes)))

        watcher = threading.Thread(target=sample)
        watcher.start()
        try:
            self.run()
        finally:
            done.set()
            watcher.join()
        return max(*readings, sum(map(pss_mb, self.processes)))

    def _last_log_line(self) -> str:
        lines = self.log.read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it logged nothing")

    def _send(self, message: str, processes: Sequence[subprocess.Popen[str]] | None = None) -> None:
        for process in processes or self.processes:
            assert process.stdin is not None
            try:
                process.stdin.write(message + "\n")
                process.stdin.flush()
            except BrokenPipeError:
                raise Failed(self._last_log_line()) from None

    def _expect(self, reply: str, processes: Sequence[subprocess.Popen[str]] | None = None) -> None:
        for process in processes or self.processes:
            assert process.stdout is not None
            while (line := process.stdout.readline()).strip() != reply:
                if not line:
                    process.wait(EXIT_TIMEOUT_SECONDS)  # so that its log is complete
                    raise Failed(self._last_log_line())


@dataclass
class Command:
    """A command whose run from start to exit is one round; `before` runs untimed ahead of it."""

    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    before: Callable[[], object] = lambda: None
    peak_mb: float = 0.0

    def run(self) -> float:
        """Run the command and return its seconds; update its peak resident set size."""
        self.before()
        started = time.perf_counter()
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        options: dict[str, Any] = {"cwd": self.folder, "env": self.environment} | pipes
        with subprocess.Popen(self.command, **options) as process:
            assert process.stderr is not None
            stderr = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise Failed(stderr.decode()[-500:])
        self.peak_mb = max(self.peak_mb, usage.ru_maxrss * 1024 / MB)
        return time.perf_counter() - started


def pss_mb(process: subprocess.Popen[str]) -> float:
    """Proportional set size (PSS) of a process and its children: shared pages count in part."""
    total = 0.0
    with contextlib.suppress(psutil.Error):  # it has ended
        parent = psutil.Process(process.pid)
        for member in (parent, *parent.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += member.memory_full_info().pss / MB
    return total


def time_interleaved(
    variants: Mapping[str, Workers | Command], rounds: int, *, warm: bool = True
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Time `rounds` sweeps; return the seconds of each variant and the reason of each failure.

    With `warm`, one more sweep runs first and is not counted. A variant that fails is left out.
    """
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    failures: dict[str, str] = {}
    for sweep in range(0 if warm else 1, rounds + 1):
        order = [name for name in variants if name not in failures]
        random.shuffle(order)
        for name in order:
            try:
                taken = variants[name].run()
            except Failed as error:
                failures[name] = str(error)
                seconds.pop(name)
            else:
                if sweep:
                    seconds[name].append(taken)
        print(f"    sweep {sweep} of {rounds}", file=sys.stderr, flush=True)
    return seconds, failures


def times_faster(reference: Sequence[float], ours: Sequence[float]) -> float:
    """Speedup over the reference: the median over sweeps of the ratio within each sweep."""
    return statistics.median(slow / fast for slow, fast in zip(reference, ours, strict=True))


def middle_half(values: Sequence[float]) -> tuple[float, float]:
    """The quartiles of at least one value."""
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
