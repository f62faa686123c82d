"""Collects the records of an experiment into one tidy table, the input of figures and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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


@dataclass(frozen=True)
class Series:
    """The values of a metric, each with a round (or step), a client, a label, or two of them."""

    metric: str
    values: Any
    round: Any = None
    client: Any = None
    label: Any = None


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
    labels = (
        pd.DataFrame(heads)
        .apply(_of_one_type)
        .take(np.repeat(np.arange(len(heads)), list(map(len, parts))))
    )
    table = labels.reset_index(drop=True).join(pd.concat(parts, ignore_index=True)).astype(TYPES)
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
    counts = record.clients["label_counts"]
    steps, profiled = step_metrics(record.history, len(counts))
    arrays = {name: record.clients[name] for name in CLIENT_ARRAYS} | profiled
    arrays |= client_metrics(record.history, counts)
    by_run = run_metrics(record.history, len(counts)) | label_baselines(counts, record.classes)
    by_run |= tenth_percentile_accuracy(record.clients["accuracy"])
    by_class, last = class_metrics(record.classes), [len(record.history.cohorts)]
    rows = _table(
        [
            *_series_by_round(record.history),
            *(Series(name, [value], round=last) for name, value in by_run.items()),
            *(Series(name, means, round=range(1, len(means) + 1)) for name, means in steps.items()),
            *(Series(name, each, client=range(len(each))) for name, each in arrays.items()),
            *(Series(name, each, label=range(len(each))) for name, each in by_class.items()),
            _label_counts(counts),
        ]
    )
    return Result(record.header["status"], rows, attributes_of(record))


def attributes_of(record: Record) -> dict[str, Any]:
    """The settings of a record with the defaults of younger ones, its provenance, the releases that
    it was restored from, and its cost summed over rounds, for JSON."""
    header, cost = record.header, record.history.cost
    provenance = header["provenance"]
    totals = {name: sum(dict(cost.get(name, ())).values()) for name in COSTS}
    return {
        "settings": settings_with_defaults(header["settings"]),
        "restored": [source["release"] for source in header.get("restored", ())],
        "started": provenance["sessions"][-1].get("started", ""),
        "sessions": len(provenance["sessions"]),
        **{key: provenance[key] for key in ("commit", "trainer", "devices", "peak_memory_mb")},
        "versions": provenance["versions"],
        "my": user_files.module_versions(provenance),
        **totals,
    }


def rows_by_round(history: History) -> pd.DataFrame:
    """A table with a row for each round of each metric and cost that is recorded by round."""
    return _table(list(_series_by_round(history)))


def _series_by_round(history: History) -> Iterator[Series]:
    series = history.metrics | history.cost | round_metrics(history)
    for name, pairs in series.items():
        rounds, values = zip(*pairs, strict=True) if pairs else ((), ())
        yield Series(name, values, round=rounds)


def _label_counts(counts: np.ndarray) -> Series:
    """The counts above 0 and the last one: it states how many clients and classes exist."""
    kept = counts > 0
    kept[-1, -1] = True
    clients, labels = np.nonzero(kept)
    return Series("label_count", counts[kept], client=clients, label=labels)


def _table(parts: Sequence[Series]) -> pd.DataFrame:
    """A row per value with metric, round, client and label, missing where a metric has none."""
    if not parts:
        return EMPTY.iloc[:0]
    lengths = [len(part.values) for part in parts]
    columns: dict[str, Any] = {"metric": np.repeat([part.metric for part in parts], lengths)}
    for name in POSITIONS:
        places = [getattr(part, name) for part in parts]
        missing = np.repeat([place is None for place in places], lengths)
        filled = [
            np.zeros(length, np.int64) if place is None else np.asarray(place, np.int64)
            for place, length in zip(places, lengths, strict=True)
        ]
        columns[name] = pd.arrays.IntegerArray(np.concatenate(filled), missing)
    columns["value"] = np.concatenate([np.asarray(part.values, np.float64) for part in parts])
    return pd.DataFrame(columns)
