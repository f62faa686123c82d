"""Who trains a cell: one process at a time, known by a lock that dies with it.

A cell's state folder lies beside its record under a name that the workflow does not declare, so that Snakemake neither deletes nor
trusts it:

    lease                            locked while a process trains the cell; left behind, unlocked, by one that was killed or failed
    checkpoint.safetensors           the state after some round
    checkpoint.previous.safetensors  the one before it
    finished.h5                      the record of a run that ended, until the driver has seen the record in its place
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from cohort.core.files import replacing

LEASE, CHECKPOINT, PREVIOUS, FINISHED = (
    "lease",
    "checkpoint.safetensors",
    "checkpoint.previous.safetensors",
    "finished.h5",
)


def state_folder(record: str | Path) -> Path:
    """Where a cell keeps what is not its record."""
    return Path(record).with_suffix(".state")


def publish(finished: Path, record: str | Path) -> None:
    """Put a finished record in its place; both names stay until the driver has seen it there."""
    with replacing(record) as temporary:
        try:
            os.link(finished, temporary)
        except OSError:
            shutil.copyfile(finished, temporary)


def tidy(folder: Path, *keep: str) -> None:
    """Remove what is not named: checkpoints that are done with, and half-written files of processes that were killed."""
    for file in folder.iterdir():
        if file.name not in keep:
            file.unlink()


@contextlib.contextmanager
def lease(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a cell's lease, after waiting for a live holder. Its file goes when the block ends well and stays when it fails."""
    folder.mkdir(parents=True, exist_ok=True)
    file = _locked(folder / LEASE, waiting)
    try:
        yield
        (folder / LEASE).unlink()
    finally:
        file.close()


def is_held(folder: Path) -> bool:
    """Whether a live process holds the cell's lease."""
    try:
        with open(folder / LEASE) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is none, or something else in its place
        return False
    return False


def was_left(folder: Path) -> bool:
    """Whether a process began to train the cell and neither finished nor stopped on request."""
    return (folder / LEASE).exists() and not is_held(folder)


def _locked(path: Path, waiting: Callable[[], None]) -> IO[str]:
    while True:
        file = open(path, "a")  # noqa: SIM115 (closed by the caller, which ends the lease)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # the holder that we waited for removed the file: lock the new one
