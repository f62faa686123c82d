"""`cohort try`: a strategy of yours beside those of a figure or table."""

from __future__ import annotations

import argparse
import re

from cohort.commands.item import Item, add_run, find_item, print_result, run_item
from cohort.core import own
from cohort.core.errors import UserError, suggest
from cohort.core.files import write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the strategy and what to try it on."""
    parser.add_argument(
        "strategy", metavar="STRATEGY", help="a strategy, e.g. of my/strategies.yaml"
    )
    parser.add_argument(
        "--on", required=True, metavar="STUDY.NAME", help="a figure or table, e.g. fedentopt.tab1"
    )
    add_run(parser)


def run(options: argparse.Namespace) -> None:
    """Write a study that extends the experiment behind the figure or table, run and print it."""
    known = find_item(options.on, argparse.Namespace(scale=None, only=""))
    if options.strategy not in known.plan.strategies:
        choices = suggest(options.strategy, known.plan.strategies)
        raise UserError(f"there is no strategy '{options.strategy}'{choices}")
    item = find_item(options.on, options, written_study(known, options.strategy))
    if run_item(item, dry_run=options.dry_run):
        print_result(item, against=True)


def written_study(item: Item, strategy: str) -> str:
    """Write the study that adds a strategy to an item's experiment, and return its name."""
    experiment = item.spec["experiment"]
    words = re.sub(r"[^a-z0-9]+", "_", f"{strategy}_{item.study}_{experiment}")
    name = f"try_{words}"[:60]
    write_text(
        own.folder() / "studies" / f"{name}.yaml",
        f'title: "{strategy} on {item.study}.{experiment}"\n'
        "experiments:\n"
        f"  {experiment}: {{extends: {item.study}.{experiment}, strategy: [+{strategy}]}}\n",
    )
    return name
