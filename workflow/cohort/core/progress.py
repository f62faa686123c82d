"""A progress bar in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from rich import progress as rich
else:
    rich = lazy("rich.progress")  # only needed in a terminal


T = TypeVar("T")


def tracked(items: Iterable[T], doing: str, total: int | None = None) -> Iterable[T]:
    """The items, behind a progress bar in a terminal that goes when they end. `total` is their
    number if they have no length."""
    if not sys.stdout.isatty():
        return items
    return rich.track(items, doing, total, transient=True)
