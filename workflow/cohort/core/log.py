"""Job logs."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from cohort.core.errors import UserError, explain_errors

SESSION = "--- "  # begins the first line of each process that writes to a log


@contextlib.contextmanager
def log_output(path: str | Path) -> Iterator[None]:
    """Append what the block prints to a log. An error in the block ends the process with status 1
    and one line on the terminal, which is also the last line of the log."""
    path = Path(path)
    try:
        with explain_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 (closed below)
    except UserError as error:
        sys.exit(f"error: {error}")
    try:
        with (
            contextlib.redirect_stdout(file),
            contextlib.redirect_stderr(file),
            explain_errors(path),
        ):
            print(f"{SESSION}{datetime.now():%Y-%m-%d %H:%M:%S}")
            yield
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        message = f"error: {error if isinstance(error, UserError) else repr(error)}"
        with contextlib.suppress(OSError):
            if file.closed:  # by the block
                file = open(path, "a", encoding="utf-8")  # noqa: SIM115
            if error.__cause__ or not isinstance(error, (UserError, KeyboardInterrupt)):
                traceback.print_exc(file=file)
            print(message, file=file)
        sys.exit(f"{message} (log: {path})")
    finally:
        with contextlib.suppress(OSError):  # a full disk may fail even this
            file.close()


def last_line(path: str | Path) -> str:
    """The last non-blank line of a log; empty if there is none, or no log."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line for line in reversed(lines) if line.strip()), "")


def last_session(path: str | Path) -> str:
    """The output of the last process that wrote to a log; empty if there is no log."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text[max(0, f"\n{text}".rfind(f"\n{SESSION}")) :]
