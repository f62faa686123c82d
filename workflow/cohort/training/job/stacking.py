"""Cells that one process, their host, trains as one stack, each from its own checkpoint to its own
record. The processes of compatible cells on one GPU meet in a folder of locked files:

    host      locked by the process that trains the others' cells together with its own
    {digest}  locked by a process that waits for the host to train this cell; the host deletes it
              when the cell has failed, and its process then trains it alone, to fail by itself

A host ends soon after its own cell; a waiting process resumes the others from checkpoints.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from cohort.core.files import is_locked, lock, try_lock
from cohort.training.job import machine
from cohort.training.trainers.stacked import Part, StackedTrainer, Stacks
from cohort.training.trainers.trainer import Trained

HOST = "host"
LAST_SECONDS = 60.0  # from the end of a host's own cell, as others may be a few rounds behind


class Stopped(BaseException):  # no error, so that no component that handles errors catches it
    """A signal stopped the run after a client, and a checkpoint inside the round was saved."""


class GivenUp(Stopped):
    """The run stops before the client in training is done: none was done for `PATIENCE_SECONDS`
    after a signal, or the cell leaves its stack."""


def become_host(folder: Path, digest: str, is_done: Callable[[], bool]) -> IO[str] | None:
    """The host's lock, waited for if need be; None if another host trained the cell, or failed."""
    request_file = folder / digest
    with lock(request_file):
        host = try_lock(folder / HOST)
        if host is None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # like SIGTERM: nothing is to be saved
            print("another process trains this cell in its stack, while that one runs", flush=True)
        while host is None and request_file.exists() and not is_done():
            time.sleep(machine.POLL_SECONDS)
            host = try_lock(folder / HOST)
        request_file.unlink(missing_ok=True)
    return host


class Member(threading.Thread):
    """A cell's run as a coroutine. It runs while its host waits in `resume`, until it asks for
    training or ends; `part` is what it asks for, None once it has ended. Its working directory and
    output streams are its own, should a component change them. A guest is of another process."""

    def __init__(
        self, digest: str, is_guest: bool, train: Callable[[Member], None], signals: list[int]
    ):
        super().__init__(name=digest, daemon=True)
        self.is_guest, self.train, self.signals = is_guest, train, signals
        self.part: Part | None = None
        self.seconds = 0.0  # its share of the time in which the host trained its last part
        self.error: BaseException | None = None
        self._answer: Any = None
        self._turn, self._yielded = threading.Event(), threading.Event()
        self._surroundings = sys.stdout, sys.stderr, Path.cwd()
        self.start()

    def run(self) -> None:
        """The cell's training, in its own thread."""
        try:
            self._wait_for_turn()
            self.train(self)
        except BaseException as error:
            self.error = error
        self._yielded.set()

    def trainer(self) -> type[StackedTrainer]:
        """The trainer of this member's cell, which asks the host for training."""
        member = self

        class MemberTrainer(StackedTrainer):
            def train_part(self, part: Part) -> Trained:
                return member.ask(part)

        return MemberTrainer

    def ask(self, part: Part) -> Trained:
        """Have a part trained, in the member's own thread; raise what the host raises instead."""
        self.part, began = part, time.perf_counter()
        self._yielded.set()
        self._wait_for_turn()
        part.cursor.ledger.exclude(time.perf_counter() - began - self.seconds)
        answer, self._answer = self._answer, None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def resume(self, answer: Trained | BaseException | None = None) -> None:
        """In the host's thread, let the member run until it asks again or ends."""
        self.part, self._answer = None, answer
        self._swap_surroundings()
        self._yielded.clear()
        self._turn.set()
        try:
            self._yielded.wait()
        except GivenUp:  # by the alarm, which interrupts the host alone
            identity, kind = ctypes.c_ulong(self.ident or 0), ctypes.py_object(GivenUp)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, kind)
            self._yielded.wait()
            raise
        finally:
            self._swap_surroundings()

    def _wait_for_turn(self) -> None:
        self._turn.wait()
        self._turn.clear()

    def _swap_surroundings(self) -> None:
        outside = sys.stdout, sys.stderr, Path.cwd()
        sys.stdout, sys.stderr, folder = self._surroundings
        os.chdir(folder)
        self._surroundings = outside


@dataclass
class Host:
    """Trains its own cell, those of waiting processes and those of its `group`, at most `room` at
    once. Members that ask for training are trained as one stack, then resumed one after another
    until each asks again. A member leaves when its cell ends, fails or is stopped, or its process
    waits no longer. All stop once `signals`, which they share, is not empty."""

    folder: Path
    train: Callable[[Member], None]
    room: int
    group: set[str]
    signals: list[int]
    members: list[Member] = field(default_factory=list)
    stacks: Stacks = field(default_factory=Stacks)

    def run(self, digest: str) -> None:
        """Train the cell with this digest and the group to their ends, and others until then. Raise
        the cell's error, at last: no other job of a group may begin after one that fails."""
        is_pack, own_member = bool(self.group), self._begin(digest, is_guest=False)
        until = time.monotonic()
        with contextlib.suppress(GivenUp):  # by the alarm
            while (own_member.part or is_pack or time.monotonic() < until) and not self.signals:
                if own_member.part:
                    until = time.monotonic() + LAST_SECONDS
                if own_member.part or is_pack:
                    self._admit()
                members, begun = list(self.members), time.perf_counter()
                if not members:
                    break
                answers = self.stacks.train([member.part for member in members if member.part])
                seconds = (time.perf_counter() - begun) / len(members)
                for member in members:
                    member.seconds = seconds
                    self._resume(member, answers.pop(0))
        for member in list(self.members):
            self._resume(member, GivenUp())
        if own_member.error is not None:
            raise own_member.error

    def _begin(self, digest: str, is_guest: bool = True) -> Member:
        member = Member(digest, is_guest, self.train, self.signals)
        self.members.append(member)
        self._resume(member)
        return member

    def _resume(self, member: Member, answer: Trained | BaseException | None = None) -> None:
        try:
            member.resume(answer)
        finally:
            if member.part is None:
                self.members.remove(member)
                is_stopped = self.signals or isinstance(member.error, Stopped)
                if member.error is not None and not is_stopped:
                    (self.folder / member.name).unlink(missing_ok=True)

    def _admit(self) -> None:
        """Begin cells that wait, while there is room; dismiss those whose process waits no more."""
        waiting = {file.name for file in self.folder.iterdir() if is_locked(file)} - {HOST}
        for member in list(self.members):
            if (self.folder / member.name).exists() and member.name not in waiting:
                self._resume(member, GivenUp())
        for digest in sorted((waiting | self.group) - {member.name for member in self.members}):
            if len(self.members) < self.room:
                self.group.discard(digest)
                self._begin(digest)
