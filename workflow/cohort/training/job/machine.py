"""The machine of a job: its processor or a GPU that it shares, memory, precision and threads. A GPU
has some slots, and a cell holds one of them while it trains, or waits for one. A slot is a locked
file in the system's temporary directory, named after the GPU's UUID, so that all of a user's
processes on a machine agree, whatever their working directories and CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from cohort.core import UserError, explain_errors, lazy
from cohort.core.files import is_locked, lock, try_lock
from cohort.training.job.lease import GROUP

if TYPE_CHECKING:
    import torch
    from llvmlite import binding as llvm
else:
    torch, llvm = lazy("torch"), lazy("llvmlite.binding")

POLL_SECONDS = 0.5
CPUINFO = Path("/proc/cpuinfo")
# of glibc's mallopt: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD and M_TOP_PAD, in bytes
MALLOC_OPTIONS = {-3: 1 << 30, -1: (1 << 31) - 1, -2: 1 << 28}


@contextlib.contextmanager
def acquire_device(device: str, jobs_per_gpu: int) -> Iterator[torch.device]:
    """Yield the device to train on: the CPU, the GPU that SLURM assigned, or a GPU with a free
    slot, which is held until the block ends. `device` is auto, cpu or cuda."""
    check_device(device)
    if device == "cpu" or not torch.cuda.is_available():
        yield torch.device("cpu")
        return
    gpus = visible_gpus()
    if GROUP in os.environ and len(gpus) == 1:  # a job of the driver's
        yield torch.device("cuda", 0)
        return
    waiting = partial(print, "all GPUs are busy: waiting for one", flush=True)
    with hold_gpu_slot(gpus, jobs_per_gpu, waiting) as index:
        yield torch.device("cuda", index)


def check_device(device: str) -> None:
    """Raise UserError if PyTorch sees no GPU, but the config or SLURM says that there is one."""
    if device == "cpu" or torch.cuda.is_available():
        return
    if device == "cuda":
        why = "device is cuda, but no GPU is visible here; use auto or cpu"
        raise UserError(f"config/config.yaml or --device: {why}")
    assigned = os.environ.get("CUDA_VISIBLE_DEVICES")
    if assigned and "SLURM_JOB_ID" in os.environ:
        why = f"SLURM gave this job a GPU ({assigned}), but PyTorch {torch.__version__} sees none"
        raise UserError(f"{why}: install one for the node's driver, or set device to cpu")


def visible_gpus() -> list[str]:
    """The UUIDs of the GPUs that this process may use, in torch's order; a part of a GPU (MIG) is
    known only by its name in CUDA_VISIBLE_DEVICES."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    parts = dict(enumerate(name.strip() for name in visible if name.strip().startswith("MIG-")))
    properties = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return [parts.get(number) or str(gpu.uuid) for number, gpu in enumerate(properties)]


@contextlib.contextmanager
def hold_gpu_slot(
    gpus: Sequence[str], slots: int, waiting: Callable[[], None], folder: Path | None = None
) -> Iterator[int]:
    """Hold a slot of the least used of these GPUs and yield that GPU's index in the list. Calls
    `waiting` once if none is free; `folder` holds the lock files."""
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
    One process at a time does this: no other takes a slot between counting and locking."""
    names = [re.sub(r"[^\w-]", "_", gpu) for gpu in gpus]
    with lock(folder / "counting"):
        used = [sum(map(is_locked, folder.glob(f"{name}.*"))) for name in names]
        index = used.index(min(used))
        if used[index] >= slots:
            return None
        files = (try_lock(folder / f"{names[index]}.{number}") for number in itertools.count())
        return index, next(file for file in files if file is not None)


@cache
def cpu_name() -> str:
    """The processor's model and microarchitecture, e.g. `AMD EPYC 7763 64-Core Processor (znver3)`:
    libraries choose their kernels, and so the last bits of a result, by the microarchitecture."""
    text = CPUINFO.read_text() if CPUINFO.exists() else ""
    model = re.search(r"^model name\s*:(.*)", text, re.MULTILINE)
    name = model[1].strip() if model else platform.machine()
    return f"{name} ({llvm.get_host_cpu_name()})"


def set_up(precision: str, device: torch.device) -> None:
    """Set PyTorch up for this thread and process: the device, one thread, deterministic algorithms,
    and products of exactly this precision (by default, convolutions on a GPU are in tf32), with 10
    bits of mantissa at `tf32`, which only a GPU has, and 7 at `bfloat16`, not float32's 23."""
    if precision == "tf32" and device.type != "cuda":
        why = f"but a {device.type.upper()} computes in float32 all the same"
        fix = "train this cell on a GPU, or set precision to float32 or bfloat16"
        raise UserError(f"precision is tf32, {why}: {fix}")
    if device.index is not None:
        torch.cuda.set_device(device)
    torch.set_num_threads(1)
    # else glibc returns the tensors of each step to the system and gets zeroed pages back
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        for option, size in MALLOC_OPTIONS.items():
            mallopt(option, size)
    # required by deterministic matrix products on a GPU
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # use_deterministic_algorithms(True), which would also import the compiler
    torch.set_deterministic_debug_mode("error")
    # else each new tensor is filled with NaN
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.set_autocast_enabled(device.type, precision == "bfloat16")
    torch.set_autocast_dtype(device.type, torch.bfloat16)
    # the cache would keep weights from before the first step
    torch.set_autocast_cache_enabled(False)
