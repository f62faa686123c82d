"""Options of commands, the plan they ask for, and output in 80 columns, colored in terminals."""

import argparse
import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from cohort import plan as planning
    from cohort.plan import yaml_files
else:  # `cohort run` of a plan file plans nothing
    planning, yaml_files = lazy("cohort.plan"), lazy("cohort.plan.yaml_files")

OPTIONS = {
    "scale": ("NAME", "a scale of config/scales.yaml"),
    "only": ("LABEL=VALUE", "a part of the matrix: strategy=fedavg|loss,seed=0"),
    "seeds": ("N", "number of seeds of every experiment"),
}
"""The keys of config/config.yaml that have an option of their own: its value, and its meaning."""

LISTED = "those that config/config.yaml lists"

WIDTH = 80
COLORS = {
    **dict.fromkeys(("done", "ok"), "32"),  # green
    **dict.fromkeys(("failed", "diverged"), "31"),  # red
    **dict.fromkeys(("stopped", "waiting", "warning"), "33"),  # yellow
    "running": "36",  # cyan
}
GAP, MORE = "  ", "…"


def add_config(parser: argparse.ArgumentParser, *keys: str) -> None:
    """Add --config, and for each of these keys an option of its own."""
    text = "override keys of config/config.yaml, as with snakemake, e.g. device=cpu"
    form: Any = {"nargs": "+", "action": "extend", "default": [], "metavar": "KEY=VALUE"}
    parser.add_argument("--config", help=text, **form)
    for key in keys:
        metavar, text = OPTIONS[key]
        parser.add_argument(f"--{key}", metavar=metavar, help=text)


def add_studies(
    parser: argparse.ArgumentParser, keys: Iterable[str] = OPTIONS, default: str = LISTED
) -> None:
    """Add an argument for studies (`default` says which are used without it), and these options."""
    add_config(parser, *keys)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"a study (default: {default})")


def whole_number(text: str, least: int = 0) -> int:
    """The value of an argument that must be a whole number, `least` or more."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least} on")
    return int(text)


positive = functools.partial(whole_number, least=1)


def share(text: str) -> float:
    """The value of an argument that must be a number above 0 and below 1."""
    if not 0 < float(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and below 1")
    return float(text)


def config_texts(options: argparse.Namespace) -> list[str]:
    """The KEY=VALUE texts of --config, and of the options that stand for one of its keys."""
    values = ((key, getattr(options, key, None)) for key in OPTIONS)
    return [*options.config, *(f"{key}={value}" for key, value in values if value)]


def load_plan(options: argparse.Namespace, **fixed: Any) -> "planning.Plan":
    """Load the plan for --config, the options that stand for its keys, and the studies that were
    named; `fixed` keys of the config take precedence."""
    overrides = dict(map(yaml_files.parse_override, config_texts(options)))
    if studies := dict.fromkeys(getattr(options, "studies", [])):  # each once
        overrides["studies"] = list(map(planning.require_study, studies))
    return planning.load(overrides | fixed)


def is_terminal() -> bool:
    """Whether standard output is a terminal that can move its cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, meaning: str) -> str:
    """The text in the color of its meaning (see COLORS): in a terminal, unless NO_COLOR is set."""
    is_colored = meaning in COLORS and is_terminal() and not os.environ.get("NO_COLOR")
    return f"\x1b[{COLORS[meaning]}m{text}\x1b[0m" if is_colored else text


def shortened(text: str, width: int) -> str:
    """Cut off the beginning of a text that is too wide: a path says most at its end."""
    return text if len(text) <= width else MORE + text[len(text) - width + 1 :]


def prose(text: str) -> str:
    """Wrap a sentence at 80 columns in a terminal; leave it as it is in a pipe."""
    if not is_terminal():
        return text
    return fill(text, WIDTH, break_on_hyphens=False, break_long_words=False)


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table: a name, shortened to fit, and right-aligned values."""
    texts = [list(titles), *(list(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    widths[0] = max(8, min(widths[0], WIDTH - sum(width + len(GAP) for width in widths[1:])))
    for name, *values in texts:
        fields = map(str.rjust, values, widths[1:])
        yield GAP.join([shortened(name, widths[0]).ljust(widths[0]), *fields]).rstrip()


def report(lines: Iterable[str], data: Callable[[], Any], *, as_json: bool) -> None:
    """Print lines or, `as_json`, data for programs, with null for numbers that are not finite."""
    if as_json:
        finite = json.loads(json.dumps(data()), parse_constant=lambda name: None)
        lines = [json.dumps(finite, indent=1)]
    for line in lines:
        print(line)
