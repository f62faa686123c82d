"""What a training process does with memory: where Python does not look for garbage, and what the C library keeps for the next step."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator

MMAP_THRESHOLD, TRIM_THRESHOLD, TOP_PAD = -3, -1, -2  # the parameters of glibc's mallopt
GIB = 1 << 30


@contextlib.contextmanager
def lasting() -> Iterator[None]:
    """What is made in this block stays as long as the process: Python looks for no garbage in it, neither meanwhile nor later. While
    PyTorch is imported, and again when the process ends, that takes a good part of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def keep_freed_memory() -> None:
    """Have glibc keep large blocks for the next step. Otherwise it returns each of a step's tensors to the system and gets it back zeroed,
    page by page. Another C library is left as it is."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in (
            (MMAP_THRESHOLD, GIB),
            (TRIM_THRESHOLD, 2 * GIB - 1),
            (TOP_PAD, GIB // 4),
        ):
            mallopt(parameter, value)
