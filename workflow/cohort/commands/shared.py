"""What commands share: options, the plan that these ask for, and output in lines of at most 80
columns, with colors in a terminal only."""

import argparse
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

KEYS = ("scale", "only", "seeds")  # of config/config.yaml that have an option of their own
LISTED = "those that config/config.yaml lists"

WIDTH = 80
COLORS = {
    **dict.fromkeys(("done", "ok"), "32"),  # green
    **dict.fromkeys(("failed", "diverged"), "31"),  # red
    **dict.fromkeys(("stopped", "waiting", "warning"), "33"),  # yellow
    "running": "36",  # cyan
}
GAP, MORE = "  ", "…"


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Add --config alone."""
    text = "override keys of config/config.yaml, as with snakemake, e.g. device=cpu"
    form: Any = {"nargs": "+", "action": "extend", "default": [], "metavar": "KEY=VALUE"}
    parser.add_argument("--config", help=text, **form)


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add --config, --scale and --seeds."""
    add_overrides(parser)
    parser.add_argument("--scale", metavar="NAME", help="a scale of config/scales.yaml")
    parser.add_argument("--seeds", metavar="N", help="number of seeds of every experiment")


def add_only(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the cells of a plan: --config, --scale, --seeds and --only."""
    add_config(parser)
    text = "a part of the matrix: strategy=fedavg|loss,seed=0"
    parser.add_argument("--only", metavar="LABEL=VALUE", help=text)


def add_studies(
    parser: argparse.ArgumentParser, *, whole: bool = False, default: str = LISTED
) -> None:
    """Add the names of studies and the options that plan them, --only unless they are `whole`;
    `default` says which ones are meant without a name."""
    (add_config if whole else add_only)(parser)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"a study (default: {default})")


def positive(text: str) -> int:
    """The value of an argument that must be a whole number from 1 on."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def config_texts(options: argparse.Namespace) -> list[str]:
    """The KEY=VALUE texts of --config, and of the options that stand for one of its keys."""
    values = ((key, getattr(options, key, None)) for key in KEYS)
    return [*options.config, *(f"{key}={value}" for key, value in values if value)]


def load_plan(options: argparse.Namespace, **fixed: Any) -> "planning.Plan":
    """Load the plan for --config, the options that stand for its keys, and the studies that were
    named; `fixed` keys of the config take precedence."""
    overrides = dict(map(yaml_files.parse_override, config_texts(options)))
    if getattr(options, "studies", None):
        overrides["studies"] = list(map(planning.require_study, options.studies))
    return planning.load(overrides | fixed)


def is_terminal() -> bool:
    """Whether standard output is a terminal that can move its cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, meaning: str) -> str:
    """The text in the color of its meaning (see COLORS): in a terminal, unless NO_COLOR is set."""
    is_colored = meaning in COLORS and is_terminal() and not os.environ.get("NO_COLOR")
    return f"\x1b[{COLORS[meaning]}m{text}\x1b[0m" if is_colored else text


def shortened(text: str, width: int) -> str:
    """The text without its beginning if it is wider than this: a path says most at its end."""
    return text if len(text) <= width else MORE + text[len(text) - width + 1 :]


def prose(text: str) -> str:
    """Wrap a sentence at 80 columns in a terminal; leave it as it is in a pipe."""
    if not is_terminal():
        return text
    return fill(text, WIDTH, break_on_hyphens=False, break_long_words=False)


def table(
    titles: Sequence[str], rows: Sequence[Sequence[object]], colors: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines of a table: a name, shortened to fit, and right-aligned values. `colors`
    holds the meaning of each column, for values other than 0."""
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
    """Print lines or, `as_json`, data for programs, with null for numbers that are not finite."""
    if as_json:
        finite = json.loads(json.dumps(data()), parse_constant=lambda name: None)
        lines = [json.dumps(finite, indent=1)]
    for line in lines:
        print(line)
