"""Errors about components: one sentence that says what one did wrong, and where."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from cohort.core import user_files
from cohort.core.errors import UserError
from cohort.core.files import relative_path

COMPONENTS = (
    f"{user_files.PACKAGE}.",
    "cohort.data.augmentations.",
    "cohort.models.",
    "cohort.needs.",
    "cohort.selection.",
    "cohort.training.objectives.",
    "cohort.training.participation.",
    "cohort.training.servers.",
)
"""How the names of modules begin that define components."""

READ_ONLY = (
    "; what a component is given is read-only: copy what you want to change "
    "(array.copy(), dict(state)) and return it"
)


class WrongAnswer(Exception):
    """A component returned what it must not return; the message says what."""


@contextmanager
def locate_errors(strategy: str, round: int) -> Iterator[None]:
    """Turn a wrong answer, and an exception inside a component, into an error that names the
    strategy, the round, and for an exception the file and line. Exceptions from elsewhere pass."""
    try:
        yield
    except WrongAnswer as wrong:
        raise UserError(f"strategy '{strategy}', round {round}: {wrong}") from None
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:
        line = _component_line(error)
        if not line:
            raise
        reason = f"{type(error).__name__}: {error}{_hint(error)}"
        raise UserError(f"strategy '{strategy}', round {round}: {line}: {reason}") from error


def _component_line(error: Exception) -> str:
    """The innermost line of a component that an exception passed through; empty if none did."""
    steps = traceback.walk_tb(error.__traceback__)
    lines = [
        f"{relative_path(frame.f_code.co_filename)}, line {line}, in {frame.f_code.co_name}"
        for frame, line in steps
        if frame.f_globals.get("__name__", "").startswith(COMPONENTS)
    ]
    return lines[-1] if lines else ""


def _hint(error: Exception) -> str:
    text = str(error)
    is_write = "read-only" in text or "mappingproxy" in text
    return (
        READ_ONLY if is_write and isinstance(error, ValueError | TypeError | AttributeError) else ""
    )
