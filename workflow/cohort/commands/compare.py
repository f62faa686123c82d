"""`cohort compare`: two result trees, or the records of two git revisions, cell by cell."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cohort.commands.planning import add_json
from cohort.commands.screen import paint, print_json
from cohort.core.errors import UserError, suggest
from cohort.core.paths import CELLS, records_in
from cohort.core.text import counted
from cohort.records.record import Record, read
from cohort.results.differences import Cell, Difference, cell_of, differences, is_same
from cohort.results.names import METRICS

MOST_MISSING = 5  # cells of one side alone that are named

Side = dict[Cell, Record]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two sides, the metric, and --json."""
    for name in ("a", "b"):
        parser.add_argument(
            name,
            metavar=name.upper(),
            help="a folder with results, or a git revision: the records here that it trained",
        )
    parser.add_argument(
        "--metric",
        default="test_accuracy",
        help="the metric to compare after the last round (test_accuracy)",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print which cells of two sides differ, by how much, and whether significantly."""
    first, second = read_side(options.a), read_side(options.b)
    _check_metric(options.metric, [*first.values(), *second.values()])
    changes = differences(first, second, options.metric)
    if options.json:
        print_json(summarize(first, second, changes, options.metric))
    else:
        _print(options, first, second, changes)


def read_side(text: str) -> Side:
    """Read the records of a folder or git revision by cell; of two versions the younger file."""
    folder = Path(text)
    if folder.is_dir():
        roots = (folder / CELLS, folder / "cells", folder)
        files = _record_files(next(root for root in roots if root.is_dir()))
        records = [read(file) for file in files]
    else:
        wanted = _commit(text)
        if wanted is None:
            raise UserError(f"'{text}' is neither a folder nor a git revision")
        every = [read(file) for file in _record_files(Path(CELLS))]
        made_by = {record.header["provenance"]["commit"] for record in every}
        right = {name for name in made_by if _commit(name.removesuffix("-dirty")) == wanted}
        records = [record for record in every if record.header["provenance"]["commit"] in right]
    if not records:
        raise UserError(f"{text} has no records")
    return {cell_of(record): record for record in records}


def _record_files(folder: Path) -> list[Path]:
    """List the record files in a folder, the oldest first."""
    return sorted(records_in(folder), key=lambda file: file.stat().st_mtime)


def _commit(text: str) -> str | None:
    """The hash of a git revision of this repository; None if there is none of that name."""
    command = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _check_metric(metric: str, records: Iterable[Record]) -> None:
    metrics = {name: None for record in records for name in record.history.metrics}
    if metric not in metrics:
        raise UserError(f"these records have no metric '{metric}'{suggest(metric, metrics)}")


def summarize(first: Side, second: Side, changes: list[Difference], metric: str) -> dict[str, Any]:
    """How two sides differ, for JSON: counts, cells of one side alone, and each difference."""
    both = [cell for cell in first if cell in second]
    return {
        "metric": metric,
        "in_both": len(both),
        "identical": sum(is_same(first[cell], second[cell]) for cell in both),
        "only_a": [_digest(first[cell]) for cell in first if cell not in second],
        "only_b": [_digest(second[cell]) for cell in second if cell not in first],
        "differences": [
            {
                "cell": change.name,
                "a": change.first,
                "b": change.second,
                "mean": change.mean,
                "paired": change.sample is not None,
                "p_value": change.p_value,
                "verdict": change.verdict,
            }
            for change in changes
        ],
    }


def _digest(record: Record) -> str:
    return str(record.header["digest"])


def _print(
    options: argparse.Namespace, first: Side, second: Side, changes: list[Difference]
) -> None:
    counts = summarize(first, second, changes, options.metric)
    for name, records in (("A", first), ("B", second)):
        origin = _made_with(records)
        print(
            f"{name}: {getattr(options, name.lower())}, {counted(len(records), 'record')}, {origin}"
        )
    both = "1 cell is" if counts["in_both"] == 1 else f"{counts['in_both']} cells are"
    print(f"{both} in both, {counts['identical']} of them bit by bit the same")
    for name in ("a", "b"):
        if only := counts[f"only_{name}"]:
            more = ", ..." if len(only) > MOST_MISSING else ""
            print(f"{len(only)} only in {name.upper()}: {', '.join(only[:MOST_MISSING])}{more}")
    for name, records in (("A", first), ("B", second)):
        if diverged := sum(record.header["status"] == "diverged" for record in records.values()):
            print(f"{diverged} diverged in {name}: their values are left out")
    if changes:
        print(f"\n{METRICS[options.metric].label} after the last round, A -> B")
    for change in changes:
        print(f"{change.name}\n  {_difference_text(change, options.metric)}")


def _made_with(records: Mapping[Cell, Record]) -> str:
    """A text on which trainers, on which devices and with which torch made the records."""
    provenances = [record.header["provenance"] for record in records.values()]
    trainers = dict.fromkeys(provenance["trainer"] for provenance in provenances)
    devices = {device: None for provenance in provenances for device in provenance["devices"]}
    versions = dict.fromkeys(provenance["versions"]["torch"] for provenance in provenances)
    return f"{', '.join(trainers)} on {', '.join(devices)}, torch {', '.join(versions)}"


def _difference_text(change: Difference, metric: str) -> str:
    shown = METRICS[metric]
    digits, scale = shown.digits, shown.scale
    first, second = (
        f"{scale * sum(values.values()) / len(values):.{digits}f}"
        for values in (change.first, change.second)
    )
    text = f"{first} -> {second}  {scale * change.mean:+.{digits}f}"
    if change.sample is None:
        text += f" ({len(change.first)} and {len(change.second)} other seeds)"
    elif change.sample.n > 1:
        low, high = (scale * bound for bound in change.sample.interval())
        text += f" ({low:+.{digits}f} to {high:+.{digits}f}, {change.sample.n} seeds)"
    else:
        text += " (1 seed)"
    meaning = ""
    if change.verdict == "significant" and shown.better:
        meaning = "better" if (change.mean > 0) == (shown.better == "high") else "worse"
    return f"{text}  {paint(change.verdict, meaning)}"
