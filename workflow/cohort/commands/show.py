"""`cohort show`: what a record holds, or what stands behind a figure or table."""

from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cohort.commands.planning import add_config, add_json
from cohort.commands.screen import WIDTH, print_json, table
from cohort.core.errors import UserError
from cohort.core.files import relative_path
from cohort.core.lazy import lazy
from cohort.core.paths import records_matching
from cohort.records.record import Record, read

if TYPE_CHECKING:
    from cohort.commands import item_summary
else:  # a record is shown without any planning
    item_summary = lazy("cohort.commands.item_summary")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to show, the scale, and --json."""
    parser.add_argument(
        "what",
        metavar="WHAT",
        help="a record's path, a digest or the beginning of one, or a figure or table, "
        "e.g. fedentopt.tab1",
    )
    add_config(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print a record, or what stands behind a figure or table."""
    if is_item(options.what):
        item_summary.print_item(options.what, options)
        return
    record = read(find_record(options.what))
    if options.json:
        print_json(summarize(record))
    else:
        print_record(record)


def is_item(text: str) -> bool:
    """Whether a text looks like STUDY.NAME, not like a path or a digest."""
    return "." in text and "/" not in text and not text.endswith(".h5") and not Path(text).exists()


def print_record(record: Record) -> None:
    """Print a record's header, settings, traffic, and summaries of its metrics and its clients."""
    summary = summarize(record)
    header = {key: value for key, value in record.header.items() if key != "settings"}
    print(json.dumps(header, indent=1))
    settings = (f"{key}={value}" for key, value in record.header["settings"].items())
    text = "settings: " + ", ".join(settings)
    print(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    rows = []
    for name, values in summary["metrics"].items():
        numbers = (f"{values[key]:.6g}" for key in ("last", "lowest", "highest"))
        rows.append((name, values["values"], *numbers))
    for line in table(("metric", "values", "last", "lowest", "highest"), rows):
        print(line)
    for what, sizes in record.history.traffic.items():
        up, down, between = sizes / 1e6
        print(f"{what:18} sent in MB: {up:.6g} up, {down:.6g} down, {between:.6g} between clients")
    clients = summary["clients"]
    low, middle, high = clients["accuracy"]
    print(
        f"{clients['clients']} clients: chosen {clients['chosen'][0]} to {clients['chosen'][1]} "
        f"times; accuracy on their own samples {low:.3f} / {middle:.3f} / {high:.3f} "
        "(10th percentile, median, 90th)"
    )


def summarize(record: Record) -> dict[str, Any]:
    """For JSON: a record's header, a summary of each metric, bytes sent, a summary of clients."""
    accuracy, selected = record.clients["accuracy"], record.clients["selected"]
    return {
        **record.header,
        "metrics": {
            name: _summarize_values(np.array(pairs)[:, 1])
            for name, pairs in (record.history.metrics | record.history.cost).items()
        },
        "bytes_sent": {
            what: dict(zip(("up", "down", "between_clients"), sizes.tolist(), strict=True))
            for what, sizes in record.history.traffic.items()
        },
        "clients": {
            "clients": len(accuracy),
            "chosen": [int(selected.min()), int(selected.max())],
            "accuracy": np.nanpercentile(accuracy, [10, 50, 90]).tolist(),
        },
    }


def _summarize_values(values: np.ndarray) -> dict[str, float]:
    return {
        "values": len(values),
        "last": float(values[-1]),
        "lowest": float(values.min()),
        "highest": float(values.max()),
    }


def find_record(text: str) -> Path:
    """The path of the record with this path or this beginning of a digest. Raise UserError if no
    digest, or several, begin so."""
    if "/" in text or text.endswith(".h5"):
        return Path(relative_path(text))
    matches = records_matching(text)
    if len(matches) > 1:
        raise UserError(f"'{text}' is the beginning of {len(matches)} digests; give more of it")
    if not matches:
        raise UserError(f"there is no record of a cell '{text}'; give its path or its digest")
    return matches[0]
