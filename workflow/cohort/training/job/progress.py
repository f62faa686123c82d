"""Progress of a run: a live bar in a terminal, otherwise lines in the log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cohort.core.lazy import lazy
from cohort.core.text import duration_text
from cohort.training.task import RunState

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
            text = f"{self.name}  {progress_text(state, self.rounds)}  {speed:.3g} rounds/s"
            print(f"{text}  {left} left", flush=True)


@contextmanager
def progress_display(rounds: int, title: str) -> Iterator[Watch]:
    """Show a live bar on a terminal, else print lines; yield the function to call every round."""
    if not sys.stdout.isatty():
        yield LogLines(rounds, title)
        return
    columns = "{task.description}", rich.BarColumn(), rich.TimeRemainingColumn()
    with rich.Progress(*columns) as progress:
        bar = progress.add_task(title, total=rounds)

        def watch(state: RunState) -> None:
            text = f"{title}  {progress_text(state, rounds)}"
            progress.update(bar, completed=state.round, description=text)

        yield watch


def progress_text(state: RunState, rounds: int) -> str:
    """The current round of a run and its latest evaluation as text."""
    if not state.history.metrics.get("test_accuracy"):
        return f"round {state.round}/{rounds}  not evaluated yet"
    accuracy, loss = (state.history.last(f"test_{name}") for name in ("accuracy", "loss"))
    return f"round {state.round}/{rounds}  test accuracy {accuracy:.4f}  loss {loss:.4f}"
