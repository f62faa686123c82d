"""Locks between processes: held by one at a time, free when the holder ends or dies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cohort.core.files import is_locked, lock, try_lock
from tests.conftest import ROOT
from tests.workflow.conftest import wait_for

HOLDER = """
import sys
from pathlib import Path
from cohort.core.files import lock

path, message = Path(sys.argv[1]), Path(sys.argv[2])
with lock(path, waiting=lambda: message.write_text("waiting")):
    message.write_text("locked")
    if sys.stdin.read() == "delete":
        path.unlink()
"""
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}
Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a process that holds the lock until its input ends; its state is in the named file."""
    started: list[subprocess.Popen[str]] = []

    def start(name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock"), str(tmp_path / name)]
        started.append(subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.PIPE, text=True))
        wait_for(lambda: (tmp_path / name).exists() and (tmp_path / name).read_text())
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_lock_that_nobody_holds(tmp_path: Path):
    path = tmp_path / "lock"
    assert not is_locked(path) and not path.exists()
    with lock(path):
        assert is_locked(path) and try_lock(path) is None
    assert not is_locked(path)
    file = try_lock(path)
    assert file is not None and is_locked(path)
    file.close()


def test_a_killed_holder_frees_its_lock(start: Start, tmp_path: Path):
    holder = start("first")
    assert is_locked(tmp_path / "lock") and try_lock(tmp_path / "lock") is None
    holder.kill()
    holder.wait()
    assert not is_locked(tmp_path / "lock")


def test_who_waited_locks_the_file_that_is_there(start: Start, tmp_path: Path):
    """The first holder deletes the file: its successor must not hold a lock that nobody can see."""
    first, second = start("first"), start("second")
    assert (tmp_path / "first").read_text() == "locked"
    assert (tmp_path / "second").read_text() == "waiting"
    first.communicate("delete")
    wait_for(lambda: (tmp_path / "second").read_text() == "locked")
    assert is_locked(tmp_path / "lock")
    second.communicate()
    assert not is_locked(tmp_path / "lock")


def test_the_holder_deletes_the_folder_while_another_waits(tmp_path: Path):
    path = tmp_path / "state" / "lock"
    holder = lock(path)

    def end() -> None:
        shutil.rmtree(path.parent)
        holder.close()

    with lock(path, waiting=end):
        assert is_locked(path)
