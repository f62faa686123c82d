"""The end of this process."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn


def leave() -> NoReturn:
    """End this process at once, with exit status 0. All files must be closed.

    Python would first free all of PyTorch's modules, which takes about a tenth of the time that a
    cell needs to start.
    """
    with contextlib.suppress(BrokenPipeError):  # whoever read the output has seen enough
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
