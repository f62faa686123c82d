"""Progress of a run: a live bar in a terminal, otherwise lines in the log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cohort.core.lazy import lazy
from cohort.core.text import duration_text
from cohort.training.state import RunState

if TYPE_CHECKING:
    from rich import progress as rich
else:
    rich = lazy("rich.progress")  # only needed in a terminal

Watch = Callable[[RunState], None]
EVERY_SECONDS = 10.0


class LogLines:
    """Prints the progress of a run: a line at most every ten seconds, and one after the last round.
    Each begins with the name of the cell."""

    def __init__(self, rounds: int, name: str):
        self.rounds, self.name = rounds, name
        self.started = self.printed = time.monotonic()
        self.first: int | None = None

    def __call__(self, state: RunState) -> None:
        self.first = state.round - 1 if self.first is None else self.first
        now = time.monotonic()
        if now - self.printed >= EVERY_SECONDS or state.round == self.rounds:
            self.printed = now
            speed = (state.round - self.first) / max(now - self.started, 1e-9)
            left = duration_text((self.rounds - state.round) / speed)
            where = f"{self.name}  {progress_text(state, self.rounds)}"
            print(f"{where}  {speed:.3g} rounds/s  {left} left", flush=True)


@contextmanager
def progress_display(rounds: int, title: str) -> Iterator[Watch]:
    """Show a live bar on a terminal, else print lines; yield the function to call every round."""
    if not sys.stdout.isatty():
        yield LogLines(rounds, title)
        return
    with live_bar(rounds, title) as watch:
        yield watch


@contextmanager
def live_bar(rounds: int, title: str) -> Iterator[Watch]:
    """Show a bar with the latest evaluation, the speed and the time left; yield the function to
    call every round."""
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[speed]}"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns) as progress:
        bar = progress.add_task(title, total=rounds, speed="")
        started, first = time.monotonic(), None

        def watch(state: RunState) -> None:
            nonlocal first
            first = state.round - 1 if first is None else first
            speed = (state.round - first) / max(time.monotonic() - started, 1e-9)
            text = f"{latest_evaluation(state)}  {speed:.3g} rounds/s"
            progress.update(bar, completed=state.round, speed=text)

        yield watch


def progress_text(state: RunState, rounds: int) -> str:
    """The current round of a run and its latest evaluation as text."""
    return f"round {state.round}/{rounds}  {latest_evaluation(state)}"


def latest_evaluation(state: RunState) -> str:
    """The latest test accuracy and loss of a run as text."""
    if not state.history.metrics.get("test_accuracy"):
        return "not evaluated yet"
    accuracy, loss = (state.history.last(f"test_{name}") for name in ("accuracy", "loss"))
    return f"test accuracy {accuracy:.4f}  loss {loss:.4f}"
