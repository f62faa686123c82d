"""Memory of training processes: garbage collection, and freed memory that is kept for reuse."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator

MMAP_THRESHOLD, TRIM_THRESHOLD, TOP_PAD = -3, -1, -2  # parameters of glibc's mallopt
GIB = 1 << 30


@contextlib.contextmanager
def freeze_objects() -> Iterator[None]:
    """Suspend garbage collection in this block, then exempt all objects that exist from collection.

    For a block that plans a study or imports PyTorch, this saves time there and at the exit.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def keep_freed_memory() -> None:
    """Make glibc keep large freed blocks for reuse; do nothing with other C libraries.

    Otherwise it returns the tensors of each step to the system and gets zeroed pages back.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, GIB)
        mallopt(TRIM_THRESHOLD, 2 * GIB - 1)
        mallopt(TOP_PAD, GIB // 4)
