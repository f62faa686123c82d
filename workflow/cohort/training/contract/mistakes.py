"""Errors about components: one sentence that says what one did wrong, and where."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from cohort.core import user_files
from cohort.core.errors import UserError
from cohort.core.files import relative_path
from cohort.core.process import unchanged_process

COMPONENTS = (
    f"{user_files.PACKAGE}.",
    "cohort.data.augmentations",
    "cohort.models",
    "cohort.needs",
    "cohort.selection",
    "cohort.training.objectives",
    "cohort.training.participation",
    "cohort.training.servers",
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
    """Turn a wrong answer, an exception or sys.exit inside a component, and a change of the process
    into an error that names the strategy, the round, and for an exception the file and line.
    Exceptions from elsewhere pass."""
    where = f"strategy '{strategy}', round {round}"
    try:
        with unchanged_process(f"{where}: a component"):
            yield
    except WrongAnswer as wrong:
        raise UserError(f"{where}: {wrong}") from None
    except (UserError, OSError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        line = _component_line(error)
        if not line:
            raise
        reason = f"{type(error).__name__}: {error}{_hint(error)}"
        raise UserError(f"{where}: {line}: {reason}") from error


def _component_line(error: BaseException) -> str:
    """The innermost line of a component that an exception passed through; empty if none did."""
    steps = traceback.walk_tb(error.__traceback__)
    lines = [
        f"{relative_path(frame.f_code.co_filename)}, line {line}, in {frame.f_code.co_name}"
        for frame, line in steps
        if frame.f_globals.get("__name__", "").startswith(COMPONENTS)
    ]
    return lines[-1] if lines else ""


def _hint(error: BaseException) -> str:
    text = str(error)
    is_write = any(words in text for words in ("read-only", "mappingproxy", "WRITEABLE"))
    return (
        READ_ONLY if is_write and isinstance(error, ValueError | TypeError | AttributeError) else ""
    )
