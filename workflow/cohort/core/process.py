"""A process of the pipeline: its log, progress bar, memory and end."""

import contextlib
import gc
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import NoReturn, TypeVar

from cohort.core import user_files
from cohort.core.errors import UserError, explain_errors
from cohort.core.lazy import lazy

rich = lazy("rich.progress")  # only needed in a terminal

SESSION = "--- "  # begins the first line of each process that writes to a log
T = TypeVar("T")


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
        with redirect_stdout(file), redirect_stderr(file), explain_errors(path):
            print(f"{SESSION}{datetime.now():%Y-%m-%d %H:%M:%S}")
            yield
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        is_named = isinstance(error, UserError)
        parts = [str(error)] if is_named else [user_files.user_position(error), repr(error)]
        if isinstance(error, KeyboardInterrupt):
            parts = ["stopped before it was done; start again"]
        message = ": ".join(["error", *filter(None, parts)])
        with contextlib.suppress(OSError):
            if error.__cause__ or not isinstance(error, (UserError, KeyboardInterrupt)):
                traceback.print_exc(file=file)
            print(message, file=file)
        sys.exit(f"{message} (log: {path})")
    finally:
        with contextlib.suppress(OSError):  # a full disk may fail even this
            file.close()


def stop_signals() -> list[signal.Signals]:
    """The stop signals: Ctrl-C, SIGTERM and, unless nohup ignores it, SIGHUP (closed terminal)."""
    hang_up = [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN else []
    return [signal.SIGINT, signal.SIGTERM, *hang_up]


def last_line(path: str | Path) -> str:
    """The last non-blank line of a log; empty if there is none, or no log."""
    return next((line for line in reversed(_text_of(path).splitlines()) if line.strip()), "")


def last_session(path: str | Path) -> str:
    """The output of the last process that wrote to a log; empty if there is no log."""
    text = _text_of(path)
    return text[max(0, f"\n{text}".rfind(f"\n{SESSION}")) :]


def _text_of(log: str | Path) -> str:
    try:
        return Path(log).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def tracked(items: Iterable[T], doing: str, total: int | None = None) -> Iterable[T]:
    """The items, behind a progress bar in a terminal. `total` counts those without a length."""
    is_terminal = sys.stdout.isatty()
    return rich.track(items, doing, total, transient=True) if is_terminal else items


@contextlib.contextmanager
def freeze_objects() -> Iterator[None]:
    """Suspend garbage collection in this block, then exempt all objects that exist from collection:
    imports and planning are faster, and so is the exit."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def leave() -> NoReturn:
    """End this process at once, with exit status 0 and without freeing PyTorch's modules, which
    takes a tenth of the time that a cell needs to start. All files must be closed."""
    with contextlib.suppress(BrokenPipeError):  # whoever read the output has seen enough
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
