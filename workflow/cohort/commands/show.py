"""`cohort show`: what a record holds."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from cohort.core.errors import UserError
from cohort.core.layout import records_of
from cohort.records.record import Record, read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the record."""
    parser.add_argument(
        "record",
        metavar="RECORD",
        help="the path of a record, or a digest or the beginning of one",
    )


def run(options: argparse.Namespace) -> None:
    """Print a record's header, its settings, a summary of each metric, and of its clients."""
    record = read(_found(options.record))
    header = {key: value for key, value in record.header.items() if key != "settings"}
    settings = (f"{key}={value}" for key, value in record.header["settings"].items())
    print(json.dumps(header, indent=1))
    print("settings: " + ", ".join(settings))
    for name, pairs in (record.history.metrics | record.history.cost).items():
        values = np.array([value for _, value in pairs])
        print(
            f"{name:18} {len(values):6} values  last {values[-1]:.6g}  "
            f"lowest {values.min():.6g}  highest {values.max():.6g}"
        )
    for what, sizes in record.history.traffic.items():
        up, down, between = sizes / 1e6
        print(f"{what:18} sent in MB: {up:.6g} up, {down:.6g} down, {between:.6g} between clients")
    print(_clients(record))


def _found(text: str) -> Path:
    """The record with this path or this beginning of a digest."""
    found = [Path(text)] if "/" in text else records_of(text)
    if len(found) > 1:
        raise UserError(f"'{text}' is the beginning of {len(found)} digests; give more of it")
    if not found:
        raise UserError(f"there is no record of a cell '{text}'; give a path or a digest")
    return found[0]


def _clients(record: Record) -> str:
    accuracy, selected = record.clients["accuracy"], record.clients["selected"]
    low, middle, high = np.nanpercentile(accuracy, [10, 50, 90])
    return (
        f"{len(accuracy)} clients: chosen {selected.min()} to {selected.max()} times; "
        f"accuracy on their own samples {low:.3f} / {middle:.3f} / {high:.3f} "
        "(10th percentile, median, 90th)"
    )
