"""Share a machine's GPUs: each has some slots, and a cell holds one of them while it trains.

A slot is a locked file in the system's temporary directory, named after the GPU's UUID. So all of a
user's processes on a machine agree, also from several working directories and with different
CUDA_VISIBLE_DEVICES. A cell that finds no free slot waits. It keeps its core of Snakemake's
`--cores`, which costs nothing: another cell on that core would need a GPU too.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from cohort.core.errors import UserError, explain_errors
from cohort.core.files import is_locked, lock, try_lock
from cohort.core.lazy import lazy

if TYPE_CHECKING:
    import torch
else:
    torch = lazy("torch")

POLL_SECONDS = 0.5


@contextlib.contextmanager
def acquire_device(device: str, jobs_per_gpu: int) -> Iterator[torch.device]:
    """Yield the device to train on: the CPU, the GPU that SLURM assigned, or a GPU with a free
    slot.

    The slot is held until the block ends. `device` is auto, cpu or cuda.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "config/config.yaml or --device: device is cuda, but no GPU is visible here; "
            "use auto or cpu"
        )
    if device == "cpu" or not torch.cuda.is_available():
        yield torch.device("cpu")
        return
    gpus = visible_gpus()
    if "SLURM_JOB_ID" in os.environ and len(gpus) == 1:
        yield torch.device("cuda", 0)
        return
    with hold_slot(gpus, jobs_per_gpu, waiting=_say_busy) as index:
        torch.cuda.set_device(index)
        yield torch.device("cuda", index)


def visible_gpus() -> list[str]:
    """The UUIDs of the GPUs that this process may use, in torch's order.

    A part of a GPU (MIG) is known only by its name in CUDA_VISIBLE_DEVICES.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    parts = dict(enumerate(name.strip() for name in visible if name.strip().startswith("MIG-")))
    return [
        parts.get(n) or str(torch.cuda.get_device_properties(n).uuid)
        for n in range(torch.cuda.device_count())
    ]


@contextlib.contextmanager
def hold_slot(
    gpus: Sequence[str], slots: int, waiting: Callable[[], None], folder: Path | None = None
) -> Iterator[int]:
    """Hold a slot of the least used of these GPUs and yield that GPU's index in the list.

    Calls `waiting` once if none is free. `folder` holds the lock files.
    """
    folder = folder or Path(tempfile.gettempdir(), f"cohort-gpus-{os.getuid()}")
    with explain_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        taken = _lock_free_slot(gpus, slots, folder)
        if taken is None:
            waiting()
        while taken is None:
            time.sleep(POLL_SECONDS)
            taken = _lock_free_slot(gpus, slots, folder)
    index, file = taken
    with file:
        yield index


def _lock_free_slot(gpus: Sequence[str], slots: int, folder: Path) -> tuple[int, IO[str]] | None:
    """Lock a free slot of the least used GPU; return that GPU's index and the locked file, or None.

    One process at a time does this, so no other one takes a slot between counting and locking.
    """
    names = [re.sub(r"[^\w-]", "_", gpu) for gpu in gpus]
    with lock(folder / "counting"):
        used = [sum(map(is_locked, folder.glob(f"{name}.*"))) for name in names]
        index = used.index(min(used))
        if used[index] >= slots:
            return None
        files = (try_lock(folder / f"{names[index]}.{number}") for number in itertools.count())
        return index, next(file for file in files if file is not None)


def _say_busy() -> None:
    print("all GPUs are busy: waiting for one", flush=True)
