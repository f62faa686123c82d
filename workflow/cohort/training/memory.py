"""How the C library keeps memory that a training step gives back."""

from __future__ import annotations

import ctypes

MMAP_THRESHOLD, TRIM_THRESHOLD, TOP_PAD = -3, -1, -2  # the parameters of glibc's mallopt
GIB = 1 << 30


def keep_freed_memory() -> None:
    """Have glibc keep large blocks for the next step. Otherwise it returns each of a step's tensors to the system and gets it back zeroed,
    page by page. Another C library is left as it is."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in ((MMAP_THRESHOLD, GIB), (TRIM_THRESHOLD, 2 * GIB - 1), (TOP_PAD, GIB // 4)):
            mallopt(parameter, value)
