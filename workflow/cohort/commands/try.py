"""`cohort try`: strategies of yours compared with those of a figure or table."""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from cohort.commands.item import Item, add_run_arguments, find_item, run_item
from cohort.core import user_files
from cohort.core.errors import UserError, errors_at, suggest
from cohort.core.files import write_text
from cohort.plan import load
from cohort.plan.yaml_files import read_yaml
from cohort.results.ranks import Standings
from cohort.results.tables.leaderboard import rank_interval

LONGEST = 60  # letters of the name of a study


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the strategies, what to try them on, and --retrain."""
    parser.add_argument(
        "strategies", nargs="+", metavar="STRATEGY", help="a strategy, e.g. of my/strategies.yaml"
    )
    parser.add_argument(
        "--on", required=True, metavar="STUDY.NAME", help="a figure or table, e.g. fedentopt.tab1"
    )
    parser.add_argument(
        "--retrain",
        action="store_true",
        help="train those cells again that an earlier version of your files in my/ made",
    )
    add_run_arguments(parser)


def run(options: argparse.Namespace) -> None:
    """Run the strategies, compare them with those of the figure or table, and print all results."""
    everything = {"scale": None, "only": None, "seeds": None}
    shown = find_item(options.on, argparse.Namespace(**vars(options) | everything))
    strategies = list(dict.fromkeys(options.strategies))
    for name in strategies:
        if name not in shown.plan.strategies:
            raise UserError(f"there is no strategy '{name}'{suggest(name, shown.plan.strategies)}")
    experiment = shown.plan.study(shown.study).experiments[shown.spec["experiment"]]
    new = [name for name in strategies if name not in experiment.axes["strategy"]]
    study, text = extending_study(shown, new) if new else ("", None)
    item = find_item(options.on, options, study, text)
    if text and not options.dry_run:
        write_text(_study_file(study), yaml.safe_dump(text, sort_keys=False))
    comparison = run_item(item, options, against=True)
    if comparison and comparison.standings and not options.json:
        for name in strategies:
            print(rank_line(comparison.standings, name))


def rank_line(standings: Standings, strategy: str) -> str:
    """A line on a strategy's rank, `mine: rank 3 of 17 [1, 6]`, or why it has none."""
    entry = next((entry for entry in standings.entries if entry.strategy == strategy), None)
    if entry is None:
        return f"{strategy}: no rank, as no seed of a setting has finished with all strategies"
    if standings.no_ranking:
        return f"{strategy}: {standings.no_ranking}"
    ends = rank_interval(entry)
    return f"{strategy}: rank {entry.rank.value:.0f} of {len(standings.entries)} {ends}".rstrip()


def extending_study(item: Item, strategies: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The name and the text of the study that adds strategies to an item's experiment. Raise
    UserError if it is impossible at any scale, because every command would stumble over it."""
    experiment = item.spec["experiment"]
    added = [f"+{strategy}" for strategy in strategies]
    extended = {"extends": f"{item.study}.{experiment}", "strategy": added}
    text: dict[str, Any] = {
        "title": f"{', '.join(strategies)} on {item.study}.{experiment}",
        "experiments": {experiment: extended},
    }
    name = _free_name([*strategies, item.study, experiment], text)
    with errors_at(f"{' and '.join(strategies)} cannot be tried on {item.study}.{item.name}"):
        for scale in item.plan.scales:
            load({"scale": scale, "studies": item.study, "only": ""}).check(_study_file(name), text)
    return name, text


def _free_name(words: Sequence[str], text: Mapping[str, Any]) -> str:
    """The name of the study of this text: with a digest if that of another has the same name, since
    `a-b` and `a b` become the same letters."""
    name = study_name(words)
    file = _study_file(name)
    if not file.exists() or read_yaml(file).get("experiments") == text["experiments"]:
        return name
    return _with_digest(name, " ".join(words))


def _study_file(name: str) -> Path:
    return Path(user_files.folder(), "studies", f"{name}.yaml")


def study_name(words: Sequence[str]) -> str:
    """The name `try_...` of a study made of these words; a digest ends one that is too long."""
    name = f"try_{re.sub(r'[^a-z0-9]+', '_', '_'.join(words))}"
    if len(name) <= LONGEST:
        return name
    return _with_digest(name, name)


def _with_digest(name: str, text: str) -> str:
    return f"{name[: LONGEST - 9]}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
