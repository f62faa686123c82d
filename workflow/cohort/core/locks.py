"""Locks between processes: files that the system unlocks when their holder closes them or dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO


def try_lock(path: Path) -> IO[str] | None:
    """Lock a file and return it, locked while it is open; None if another process has locked it."""
    file = open(path, "a")  # noqa: SIM115 (the caller closes it)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def lock(path: Path, waiting: Callable[[], None] | None = None) -> IO[str]:
    """Lock a file; if another process has locked it, call `waiting` and wait.

    The returned file is locked while it is open. Its holder may delete it before closing it, and
    then its folder.
    """
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # the holder deletes the folder
            file = try_lock(path)
            if file is None:
                if waiting is not None:
                    waiting()
                file = open(path, "a")  # noqa: SIM115 (the caller closes it)
                fcntl.flock(file, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
            file.close()  # the previous holder has deleted this file: lock its successor


def is_locked(path: Path) -> bool:
    """Whether a process has locked this file; False where there is no such file."""
    try:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
