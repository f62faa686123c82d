"""The state folder of a cell and the lease on it: one process trains the cell at a time, and a
killed process leaves it free. Everything here does without PyTorch.

    lease                            locked while the cell trains, left behind by who fails
    checkpoint.safetensors           the state after some round, or inside one
    checkpoint.previous.safetensors  the checkpoint before it
    finished.h5                      the record of a finished run, until the driver has seen it
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cohort.core.files import atomic_write, is_locked, lock

LEASE, FINISHED = "lease", "finished.h5"
CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "checkpoint.previous.safetensors"
GROUP = "COHORT_GROUP"  # an environment variable: the digests of a cluster job's cells
MAX_HEADER_BYTES = 10_000_000


@contextlib.contextmanager
def lease(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lease on a cell's state folder, after calling `waiting` if another process has it.
    Its file is deleted when the block succeeds and stays when it raises (`was_abandoned`)."""
    with lock(folder / LEASE, waiting):
        yield
        (folder / LEASE).unlink()


def is_held(folder: Path) -> bool:
    """Whether a running process holds the lease on this state folder."""
    return is_locked(folder / LEASE)


def was_abandoned(folder: Path) -> bool:
    """Whether a process that held the lease was killed or failed, and no other one holds it now."""
    return (folder / LEASE).exists() and not is_held(folder)


def publish(finished: Path, record: str | Path) -> None:
    """Put a finished record in its place in one step, as a link or copy; the original stays."""
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


def saved_header(folder: Path) -> dict[str, Any]:
    """Digest, round, diverged and sessions of a state folder's checkpoint; empty without any."""
    for name in (CHECKPOINT, PREVIOUS):
        unusable = contextlib.suppress(OSError, ValueError, KeyError, TypeError)
        with unusable, open(folder / name, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            head = json.loads(file.read(min(size, MAX_HEADER_BYTES)))
            return json.loads(head["__metadata__"]["facts"])
    return {}
