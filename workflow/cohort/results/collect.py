"""Collects the records of an experiment into one tidy table, the input of figures and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cohort.cell.planned import PLAN_FIX
from cohort.core import user_files
from cohort.core.sealed_json import read_sealed
from cohort.records.history import History
from cohort.records.record import CLIENT_ARRAYS, Record, read
from cohort.results.derived import (
    class_metrics,
    client_metrics,
    label_baselines,
    round_metrics,
    run_metrics,
    step_metrics,
    tenth_percentile_accuracy,
)
from cohort.results.differences import settings_with_defaults
from cohort.results.files import write_metrics
from cohort.results.series import label_text
from cohort.results.to_baseline import costs_to_baseline

COSTS = ("seconds", "bytes_up", "bytes_down", "client_steps")
"""What a run costs, in all its rounds together."""

EMPTY = pd.DataFrame(
    {"metric": [None], "round": [None], "client": [None], "label": [None], "value": [float("nan")]}
)
POSITIONS = ("round", "client", "label")
TYPES = {"metric": "string", **dict.fromkeys(POSITIONS, "Int64"), "value": "float64"}
Values = tuple[str, Any, dict[str, Any]]
"""A metric, its values, and their rounds (or steps), clients or labels."""


@dataclass(frozen=True)
class Result:
    """A cell's status, its metrics as rows of the table, and the `attributes_of` its record."""

    status: str
    values: pd.DataFrame
    attributes: dict[str, Any] = field(default_factory=dict)


def collect(
    plan: str | Path,
    output: str | Path,
    *,
    result_of: Callable[[str], Result] | None = None,
    sources: str = "",
) -> None:
    """Write the metrics of an experiment's cells to a Parquet file, and beside it, as JSON, the
    status of each cell with the settings, provenance and cost that its record states.

    The Parquet file has a row per cell, metric and round, client or class; label counts have a row
    per client and class. For metrics by step, `round` is the step, counted from 1. A cell that is
    shown in several panels is there once for each, under its digest with a number: the digest tells
    runs apart. `plan` is the experiment's JSON file; `result_of` reads a cell (default: its
    record); `sources` is a hash of the files that were read, see `read_sources_hash`.
    """
    experiment = read_sealed(plan, "a plan file", PLAN_FIX)
    heads, parts, runs, seen = [], [], [], Counter[str]()
    for cell in experiment["cells"]:
        seen[cell["digest"]] += 1
        again = f" {seen[cell['digest']]}" if seen[cell["digest"]] > 1 else ""
        result = (result_of or read_result)(cell["path"])
        runs.append(cell | {"status": result.status} | result.attributes)
        parts.append(result.values if len(result.values) else EMPTY)
        head = {
            "study": experiment["study"],
            "experiment": experiment["experiment"],
            "digest": cell["digest"] + again,
            **cell["labels"],
            "status": result.status,
            "generated": cell.get("generated", False),
            "share": cell.get("share", 1.0),
        }
        heads.append(head)
    rows = np.repeat(np.arange(len(heads)), list(map(len, parts)))
    labels = pd.DataFrame(heads).apply(_of_one_type).take(rows).reset_index(drop=True)
    table = labels.join(pd.concat(parts, ignore_index=True)).astype(TYPES)
    table = pd.concat([table, costs_to_baseline(table).astype(TYPES)], ignore_index=True)
    write_metrics(output, table, {**experiment, "cells": runs}, sources)


def _of_one_type(column: pd.Series[Any]) -> pd.Series[Any]:
    """The column, its values as text if they are of several types, which Parquet cannot hold."""
    return column.map(label_text) if column.dropna().map(type).nunique() > 1 else column


def read_result(path: str | Path) -> Result:
    """Read the status, metrics and attributes of a finished cell from its record."""
    return result_of_record(read(path))


def result_of_record(record: Record) -> Result:
    """The status, metrics and attributes of a finished cell, from its record in memory."""
    history, counts = record.history, record.clients["label_counts"]
    by_step, profiled = step_metrics(history, len(counts))
    by_client = {name: record.clients[name] for name in CLIENT_ARRAYS} | profiled
    by_client |= client_metrics(history, counts)
    by_run = run_metrics(history, len(counts)) | label_baselines(counts, record.classes)
    by_run |= tenth_percentile_accuracy(record.clients["accuracy"])
    by_class, last = class_metrics(record.classes), [len(history.cohorts)]
    is_stated = counts > 0
    is_stated[-1, -1] = True  # states how many clients and classes exist
    clients, labels = np.nonzero(is_stated)
    rows = _table(
        [
            *_by_round(history),
            *((name, [value], {"round": last}) for name, value in by_run.items()),
            *((name, each, {"round": range(1, len(each) + 1)}) for name, each in by_step.items()),
            *((name, each, {"client": range(len(each))}) for name, each in by_client.items()),
            *((name, each, {"label": range(len(each))}) for name, each in by_class.items()),
            ("label_count", counts[is_stated], {"client": clients, "label": labels}),
        ]
    )
    return Result(record.header["status"], rows, attributes_of(record))


def attributes_of(record: Record) -> dict[str, Any]:
    """The settings of a record with the defaults of younger ones, its provenance, the releases that
    it was restored from, and its cost summed over rounds, for JSON."""
    header, cost = record.header, record.history.cost
    provenance = header["provenance"]
    return {
        "settings": settings_with_defaults(header["settings"]),
        "restored": [source["release"] for source in header.get("restored", ())],
        "started": provenance["sessions"][-1].get("started", ""),
        "sessions": len(provenance["sessions"]),
        **{key: provenance[key] for key in ("commit", "trainer", "devices", "peak_memory_mb")},
        "versions": provenance["versions"],
        "my": user_files.module_versions(provenance),
        **{name: sum(dict(cost.get(name, ())).values()) for name in COSTS},
    }


def rows_by_round(history: History) -> pd.DataFrame:
    """A table with a row for each round of each metric and cost that is recorded by round."""
    return _table(list(_by_round(history)))


def _by_round(history: History) -> Iterator[Values]:
    for name, pairs in (history.metrics | history.cost | round_metrics(history)).items():
        rounds, values = zip(*pairs, strict=True) if pairs else ((), ())
        yield name, values, {"round": rounds}


def _table(parts: list[Values]) -> pd.DataFrame:
    """A row per value with metric, round, client and label, missing where a metric has none."""
    if not parts:
        return EMPTY.iloc[:0]
    metrics, values, positions = zip(*parts, strict=True)
    lengths = list(map(len, values))
    columns: dict[str, Any] = {"metric": np.repeat(metrics, lengths)}
    for name in POSITIONS:
        missing = np.repeat([name not in own for own in positions], lengths)
        filled = [
            np.asarray(own.get(name, np.zeros(length)), np.int64)
            for own, length in zip(positions, lengths, strict=True)
        ]
        columns[name] = pd.arrays.IntegerArray(np.concatenate(filled), missing)
    columns["value"] = np.concatenate([np.asarray(own, np.float64) for own in values])
    return pd.DataFrame(columns)
