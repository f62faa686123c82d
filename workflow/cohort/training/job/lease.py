"""The lease on a cell: one process trains it at a time, and a killed process leaves it free.

The files of a cell's state folder:

    lease                            locked by the process that trains the cell; one that was killed
                                     or failed leaves the file behind, unlocked
    checkpoint.safetensors           the state after some round
    checkpoint.previous.safetensors  the checkpoint before it
    finished.h5                      the record of a finished run, until the driver has seen it in
                                     its place
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from cohort.core.files import atomic_write, is_locked, lock

LEASE, CHECKPOINT, PREVIOUS, FINISHED = (
    "lease",
    "checkpoint.safetensors",
    "checkpoint.previous.safetensors",
    "finished.h5",
)


def publish(finished: Path, record: str | Path) -> None:
    """Put a finished record in its place in one step, as a link or a copy, replacing any that is
    there. The original stays until the driver deletes it."""
    with atomic_write(record) as temporary:
        try:
            os.link(finished, temporary)
        except OSError:
            shutil.copyfile(finished, temporary)


def tidy(folder: Path, *keep: str) -> None:
    """Delete a state folder's files except those to keep: old checkpoints, half-written files."""
    for file in folder.iterdir():
        if file.name not in keep:
            file.unlink()


@contextlib.contextmanager
def lease(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lease on a cell's state folder, after calling `waiting` if another process has it.

    The lease's file is deleted when the block succeeds and stays when it raises, see
    `was_abandoned`.
    """
    with lock(folder / LEASE, waiting):
        yield
        (folder / LEASE).unlink()


def is_held(folder: Path) -> bool:
    """Whether a running process holds the lease on this state folder."""
    return is_locked(folder / LEASE)


def was_abandoned(folder: Path) -> bool:
    """Whether a process that held the lease was killed or failed, and no other one holds it now."""
    return (folder / LEASE).exists() and not is_held(folder)
