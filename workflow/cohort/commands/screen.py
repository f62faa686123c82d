"""Output of commands: lines of at most 80 columns, with colors in a terminal only."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import fill
from typing import Any

WIDTH = 80
COLORS = {
    **dict.fromkeys(("done", "ok"), "32"),  # green
    **dict.fromkeys(("failed", "diverged"), "31"),  # red
    **dict.fromkeys(("stopped", "waiting", "warning"), "33"),  # yellow
    "running": "36",  # cyan
}
GAP, MORE = "  ", "…"


def is_terminal() -> bool:
    """Whether standard output is a terminal that can move its cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, meaning: str) -> str:
    """The text in the color of its meaning (see COLORS): in a terminal, unless NO_COLOR is set."""
    color = COLORS.get(meaning)
    is_colored = color and is_terminal() and not os.environ.get("NO_COLOR")
    return f"\x1b[{color}m{text}\x1b[0m" if is_colored else text


def shortened(text: str, width: int) -> str:
    """The text without its beginning if it is wider than this: a path says most at its end."""
    return text if len(text) <= width else MORE + text[len(text) - width + 1 :]


def prose(text: str) -> str:
    """Wrap a sentence at 80 columns in a terminal; leave it as it is in a pipe."""
    if not is_terminal():
        return text
    return fill(text, WIDTH, break_on_hyphens=False, break_long_words=False)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, with its texts in left-aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [GAP.join(map(str.ljust, row, widths)).rstrip() for row in rows]


def table(
    titles: Sequence[str], rows: Sequence[Sequence[object]], colors: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines of a table: a name, shortened to fit, and right-aligned values.

    `colors` holds the meaning of each column, for values other than 0.
    """
    texts = [list(titles), *(list(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    widths[0] = max(8, min(widths[0], WIDTH - sum(width + len(GAP) for width in widths[1:])))
    for line, row in enumerate(texts):
        fields = [shortened(row[0], widths[0]).ljust(widths[0])]
        for column, (text, width) in enumerate(zip(row[1:], widths[1:], strict=True), start=1):
            meaning = colors[column] if line and colors and text != "0" else ""
            fields.append(paint(text.rjust(width), meaning))
        yield GAP.join(fields).rstrip()


def report(lines: Iterable[str], data: Callable[[], Any], *, as_json: bool) -> None:
    """Print lines for people or, `as_json`, data for other programs, in which numbers that are not
    finite are null."""
    for line in [json.dumps(_finite(data()), indent=1)] if as_json else lines:
        print(line)


def _finite(value: Any) -> Any:
    """The value with None for each number that is not finite, which JSON does not know."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
