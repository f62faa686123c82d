"""This process: its end, and what code of the user may not change of it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from cohort.core.errors import UserError


@contextlib.contextmanager
def unchanged_process(what: str) -> Iterator[None]:
    """Raise UserError if the block changes the working directory or closes stdout: every path is
    relative to the one, and progress is printed to the other. `what` names the code in it."""
    folder = Path.cwd()
    try:
        yield
    finally:
        if Path.cwd() != folder:
            os.chdir(folder)
            raise UserError(f"{what} changed the working directory (os.chdir), which must stay")
        if sys.stdout.closed:
            raise UserError(f"{what} closed sys.stdout, to which progress is printed")


def leave() -> NoReturn:
    """End this process at once, with exit status 0. All files must be closed.

    Python would first free all of PyTorch's modules, which takes about a tenth of the time that a
    cell needs to start.
    """
    with contextlib.suppress(BrokenPipeError):  # whoever read the output has seen enough
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
