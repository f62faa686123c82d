"""Variants as processes: those that live and do a round when told to, and those that are started anew each time."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import psutil

from benchmarks.protocol import GO, READY, SAVE, SAVED

PATIENCE_SECONDS = 20  # that a process has to end by itself
EVERY_SECONDS = 0.05  # between two looks at the memory
MB = 1e6


class Variant(Protocol):
    """What can be told to do a round."""

    def go(self) -> float:
        """One round: its seconds."""


class Failed(Exception):
    """A variant's process ended before its time."""


@dataclass
class Live:
    """Processes that are set up and wait. Several of them do a round each at once, so that each round takes a part of the time."""

    commands: Sequence[Sequence[str]]
    environment: Mapping[str, str]
    log: Path
    folder: Path | None = None
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def __enter__(self) -> Live:
        try:
            with self.log.open("a") as log:
                for command in self.commands:
                    self.processes.append(
                        _started(command, self.environment, log.fileno(), self.folder)
                    )
            self._hear(READY)
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
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def go(self) -> float:
        """One round: its seconds."""
        started = time.perf_counter()
        self._tell(GO)
        self._hear(READY)
        return (time.perf_counter() - started) / len(self.processes)

    def answer(self, file: Path) -> np.ndarray:
        """What came of its rounds; that of the first process, since all do the same."""
        self._tell(f"{SAVE} {file}", self.processes[:1])
        self._hear(SAVED, self.processes[:1])
        answer: np.ndarray = np.load(file)
        return answer

    def peak_mb(self) -> float:
        """The most memory that its processes and theirs take together during a round, pages that they share counted once."""
        seen, done = [0.0], threading.Event()

        def look() -> None:
            while not done.wait(EVERY_SECONDS):
                seen.append(sum(map(proportional_mb, self.processes)))

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            self.go()
        finally:
            done.set()
            watcher.join()
        return max(*seen, sum(map(proportional_mb, self.processes)))

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "without a word")

    def _tell(self, words: str, processes: Sequence[subprocess.Popen[str]] | None = None) -> None:
        for process in processes or self.processes:
            assert process.stdin is not None
            try:
                process.stdin.write(words + "\n")
                process.stdin.flush()
            except BrokenPipeError:
                raise Failed(self._last_words()) from None

    def _hear(self, word: str, processes: Sequence[subprocess.Popen[str]] | None = None) -> None:
        for process in processes or self.processes:
            assert process.stdout is not None
            while (line := process.stdout.readline()).strip() != word:
                if not line:
                    process.wait(PATIENCE_SECONDS)  # it may still have something to say
                    raise Failed(self._last_words())


@dataclass
class Fresh:
    """A command that is started anew for each round."""

    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    before: Callable[[], object] = lambda: None
    peak_mb: float = 0.0

    def go(self) -> float:
        """From its start to its end: the seconds."""
        self.before()
        started = time.perf_counter()
        with subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stderr is not None
            said = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise Failed(said.decode()[-500:])
        self.peak_mb = max(self.peak_mb, usage.ru_maxrss * 1024 / MB)
        return time.perf_counter() - started


def proportional_mb(process: subprocess.Popen[str]) -> float:
    """The proportional set size of a process and of those that it started: a page that n processes map counts as an n-th in each."""
    try:
        parent = psutil.Process(process.pid)
        family = [parent, *parent.children(recursive=True)]
    except psutil.Error:
        return 0.0
    return sum(map(_own_mb, family))


def _own_mb(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss) / MB
    except psutil.Error:
        return 0.0


def _started(
    command: Sequence[str], environment: Mapping[str, str], log: int, folder: Path | None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,
    )
