"""`cohort try`: a strategy of yours compared with those of a figure or table."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import yaml

from cohort.commands.item import Item, add_run, find_item, run_item
from cohort.core import own
from cohort.core.errors import UserError, suggest
from cohort.core.files import write_text
from cohort.plan import load
from cohort.plan.located import located
from cohort.results.ranks import Standings
from cohort.results.tables.leaderboard import rank_interval


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the strategy, what to try it on, and --retrain."""
    parser.add_argument(
        "strategy", metavar="STRATEGY", help="a strategy, e.g. of my/strategies.yaml"
    )
    parser.add_argument(
        "--on", required=True, metavar="STUDY.NAME", help="a figure or table, e.g. fedentopt.tab1"
    )
    parser.add_argument(
        "--retrain",
        action="store_true",
        help="train the cells again that your own files made in another version",
    )
    add_run(parser)


def run(options: argparse.Namespace) -> None:
    """Run the strategy, compare it with those of the figure or table, and print all."""
    shown = find_item(options.on, argparse.Namespace(scale=None, only=""))
    if options.strategy not in shown.plan.strategies:
        choices = suggest(options.strategy, shown.plan.strategies)
        raise UserError(f"there is no strategy '{options.strategy}'{choices}")
    experiment = shown.plan.study(shown.study).experiments[shown.spec["experiment"]]
    is_new = options.strategy not in experiment.axes["strategy"]
    study = written_study(shown, options.strategy) if is_new else ""
    item = find_item(options.on, options, study)
    comparison = run_item(item, against=True, dry_run=options.dry_run, retrain=options.retrain)
    if comparison and comparison.standings:
        print(rank_line(comparison.standings, options.strategy))


def rank_line(standings: Standings, strategy: str) -> str:
    """`mine: rank 3 of 17 [1, 6]`, or why it has none."""
    entry = next((entry for entry in standings.entries if entry.strategy == strategy), None)
    if entry is None:
        return f"{strategy}: no rank, as no seed of a setting has finished with all strategies"
    ends = rank_interval(entry)
    return f"{strategy}: rank {entry.rank.value:.0f} of {len(standings.entries)} {ends}".rstrip()


def written_study(item: Item, strategy: str) -> str:
    """Write the study that adds a strategy to an item's experiment, and return its name. One that
    is impossible at any scale is not written, because every command would stumble over it."""
    experiment = item.spec["experiment"]
    words = re.sub(r"[^a-z0-9]+", "_", f"{strategy}_{item.study}_{experiment}")
    name = f"try_{words}"[:60]
    extended = {"extends": f"{item.study}.{experiment}", "strategy": [f"+{strategy}"]}
    text: dict[str, Any] = {
        "title": f"{strategy} on {item.study}.{experiment}",
        "experiments": {experiment: extended},
    }
    file = Path(own.folder(), "studies", f"{name}.yaml")
    with located(f"{strategy} cannot be tried on {item.study}.{item.name}"):
        for scale in item.plan.scales:
            load({"scale": scale, "studies": item.study, "only": ""}).check(file, text)
    write_text(file, yaml.safe_dump(text, sort_keys=False))
    return name
