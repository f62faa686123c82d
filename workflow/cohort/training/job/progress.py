"""How far a run is: a line in the log now and then, a live bar when it is run by hand."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cohort.training.state import RunState

Watch = Callable[[RunState], None]
EVERY_SECONDS = 10.0


class LogLines:
    """Prints a line at most every ten seconds, and one for the last round."""

    def __init__(self, rounds: int):
        self.rounds = rounds
        self.started = self.printed = time.monotonic()
        self.first: int | None = None

    def __call__(self, state: RunState) -> None:
        self.first = state.round - 1 if self.first is None else self.first
        now = time.monotonic()
        if now - self.printed >= EVERY_SECONDS or state.round == self.rounds:
            self.printed = now
            speed = (state.round - self.first) / max(now - self.started, 1e-9)
            print(
                f"{describe(state, self.rounds)}  {speed:.3g} rounds/s  {clock((self.rounds - state.round) / speed)} left",
                flush=True,
            )


@contextmanager
def watching(rounds: int, title: str) -> Iterator[Watch]:
    """A live bar in a terminal, lines where the output goes elsewhere."""
    if not sys.stdout.isatty():
        yield LogLines(rounds)
        return
    with live_bar(rounds, title) as watch:
        yield watch


@contextmanager
def live_bar(rounds: int, title: str) -> Iterator[Watch]:
    """A bar in the terminal, with the latest evaluation and the time left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    words = (TextColumn("{task.description}"), TextColumn("{task.fields[speed]}"))
    with Progress(
        words[0], BarColumn(), MofNCompleteColumn(), words[1], TimeRemainingColumn()
    ) as progress:
        bar = progress.add_task(title, total=rounds, speed="")
        started, first = time.monotonic(), None

        def watch(state: RunState) -> None:
            nonlocal first
            first = state.round - 1 if first is None else first
            speed = (state.round - first) / max(time.monotonic() - started, 1e-9)
            progress.update(
                bar, completed=state.round, speed=f"{found(state)}  {speed:.3g} rounds/s"
            )

        yield watch


def describe(state: RunState, rounds: int) -> str:
    """Where a run stands."""
    return f"round {state.round}/{rounds}  {found(state)}"


def found(state: RunState) -> str:
    """What the latest evaluation found."""
    if not state.history.metrics.get("test_accuracy"):
        return "not evaluated yet"
    return f"test accuracy {state.history.last('test_accuracy'):.4f}  loss {state.history.last('test_loss'):.4f}"


def clock(seconds: float) -> str:
    """Seconds as a person reads them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes:02d} min"
        if hours
        else f"{minutes} min {rest:02d} s"
        if minutes
        else f"{rest} s"
    )
