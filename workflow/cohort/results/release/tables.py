"""Records as tables, and back without loss. docs/records.md describes every column."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from cohort.records.history import PROFILE, History
from cohort.records.record import Record, check
from cohort.results.release.runs import Row, headers_of, table_of_runs, totals

CURVES = ("metrics", "cost")
"""The groups of values by round: what was measured, and what it cost."""
TABLES = ("runs", "curves", "clients", "cohorts", "classes", "profiles")
COUNTED = {"client": 0, "class": 0, "round": 1}
"""The columns that count a run's rows, with their first number."""
CLIENT_LISTS = pa.list_(pa.int64())

Columns = dict[str, Any]


def tables_of(records: Iterable[Record]) -> dict[str, pa.Table]:
    """Convert records to tables by name, each sorted by digest; empty ones are left out."""
    ordered = sorted(records, key=lambda record: record.header["digest"])
    columns_of = {
        "curves": _curves,
        "clients": _clients,
        "cohorts": _cohorts,
        "classes": _classes,
        "profiles": _profile,
    }
    tables = {"runs": table_of_runs(ordered)}
    for name, columns in columns_of.items():
        parts = [_run_table(record.header["digest"], columns(record)) for record in ordered]
        parts = [part for part in parts if len(part)]
        if parts:
            tables[name] = pa.concat_tables(parts, promote_options="default").combine_chunks()
    return tables


def records_of(tables: Mapping[str, pa.Table]) -> Iterator[Record]:
    """Rebuild the records that these tables were made of, by digest. Raise an error for a run that
    is not valid; tables that were not made of records may raise any."""
    by_digest = {name: _tables_by_run(name, table) for name, table in tables.items()}
    strangers = set().union(*by_digest.values()) - by_digest["runs"].keys()
    if strangers:
        raise ValueError(f"runs.parquet has no run {min(strangers)}")
    for header, row in headers_of(tables["runs"]):
        parts = {name: parts.get(header["digest"]) for name, parts in by_digest.items()}
        try:
            yield _record(header, row, parts)
        except Exception as error:
            raise ValueError(f"run {header['digest']}: {error}") from error


def _record(header: Row, row: Row, parts: Mapping[str, pa.Table | None]) -> Record:
    """Rebuild the record of one run, and check it."""
    for name in ("curves", "clients", "cohorts"):
        if parts.get(name) is None:
            raise ValueError(f"it has no rows in {name}.parquet")
    history = _history(parts)
    traffic = row.get("traffic", {})
    history.traffic = {what: np.array(sizes, np.int64) for what, sizes in traffic.items()}
    clients = _filled_columns(parts["clients"])
    clients["label_counts"] = np.stack(list(clients["label_counts"]))
    record = Record(header, history, clients, _filled_columns(parts.get("classes")))
    check(record)
    for name, total in totals(record.history).items():
        if not math.isclose(row.get(name, 0), total, rel_tol=1e-9):
            raise ValueError(f"{name} is {row.get(name)}, but {total} by its rounds")
    return record


def _run_table(digest: str, columns: Columns) -> pa.Table:
    """A table of one run's columns, with its digest in each row."""
    rows = len(next(iter(columns.values()), ()))
    digests = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [digest])
    return pa.table({"digest": digests} | columns)


def _curves(record: Record) -> Columns:
    names: list[tuple[str, str]] = []
    pairs: list[tuple[int, float]] = []
    for group in CURVES:
        for name, series in sorted(getattr(record.history, group).items()):
            names += [(group, name)] * len(series)
            pairs += series
    return {
        "group": pa.array([group for group, _ in names]).dictionary_encode(),
        "metric": pa.array([name for _, name in names]).dictionary_encode(),
        "round": np.array([round for round, _ in pairs], np.int64),
        "value": np.array([value for _, value in pairs], np.float64),
    }


def _clients(record: Record) -> Columns:
    arrays = {name: record.clients[name] for name in sorted(record.clients)}
    columns = {name: array if array.ndim == 1 else list(array) for name, array in arrays.items()}
    return {"client": np.arange(len(arrays["size"]))} | columns


def _cohorts(record: Record) -> Columns:
    history = record.history
    columns: Columns = {
        "round": np.arange(1, len(history.cohorts) + 1),
        "cohort": pa.array(history.cohorts, CLIENT_LISTS),
    }
    if not history.all_responded():
        columns["responders"] = pa.array(history.responders, CLIENT_LISTS)
    if history.pools:
        norms = pa.array(history.norms, pa.list_(pa.float64()))
        columns |= {"pool": pa.array(history.pools, CLIENT_LISTS), "probe_norms": norms}
    return columns


def _classes(record: Record) -> Columns:
    if not record.classes:
        return {}
    return {"class": np.arange(len(record.classes["tested"])), **record.classes}


def _profile(record: Record) -> Columns:
    if not record.history.profile:
        return {}
    return dict(zip(PROFILE, np.concatenate(record.history.profile).T, strict=True))


def _tables_by_run(name: str, table: pa.Table) -> dict[str, pa.Table]:
    """Split a table into one table per run. Raise ValueError unless it is sorted by digest, with
    one row per run in `runs`."""
    digests = table["digest"].cast(pa.string()).to_numpy(zero_copy_only=False)
    is_new = digests[1:] != digests[:-1]
    if (digests[1:] < digests[:-1]).any() or (name == "runs" and not is_new.all()):
        raise ValueError(f"{name}.parquet is not sorted by digest, or has a run twice")
    begins = np.flatnonzero(np.r_[True, is_new])
    ends = np.r_[begins[1:], len(digests)]
    return {
        digests[begin]: table.slice(begin, end - begin)
        for begin, end in zip(begins, ends, strict=True)
    }


def _filled_columns(part: pa.Table | None) -> dict[str, np.ndarray]:
    """The columns of one run's rows, without index columns and those that only other runs fill."""
    if part is None:
        return {}
    columns = {}
    for name in part.column_names:
        gaps, values = part[name].null_count, part[name].to_numpy()
        if 0 < gaps < len(part):
            raise ValueError(f"{name} lacks values")
        if name in COUNTED and values.tolist() != list(
            range(COUNTED[name], len(part) + COUNTED[name])
        ):
            raise ValueError(f"the rows are not sorted by {name}")
        if name != "digest" and name not in COUNTED and not gaps:
            columns[name] = values
    return columns


def _history(parts: Mapping[str, pa.Table | None]) -> History:
    history = History()
    curves, cohorts, profile = parts.get("curves"), parts.get("cohorts"), parts.get("profiles")
    if curves is not None:
        series_of = {"metrics": history.metrics, "cost": history.cost}
        if any(column.null_count for column in curves.columns):
            raise ValueError("curves.parquet lacks values")
        columns = [curves[name].to_numpy() for name in ("group", "metric", "round", "value")]
        if columns[2].dtype.kind != "i":
            raise ValueError("round is not a whole number")
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for (group, name), points in itertools.groupby(rows, key=itemgetter(0, 1)):
            series_of[group][name] += [(round, value) for *_, round, value in points]
    if cohorts is not None:
        filled = _filled_columns(cohorts)
        history.cohorts = list(filled["cohort"])
        history.responders = list(filled.get("responders", filled["cohort"]))
        history.pools, history.norms = (
            list(filled.get("pool", ())),
            list(filled.get("probe_norms", ())),
        )
    if profile is not None:
        history.profile = [np.stack([profile[name].to_numpy() for name in PROFILE], axis=1)]
    return history
