"""Records as tables, and back without loss. docs/records.md describes every column."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from cohort.records.history import PROFILE, History
from cohort.records.record import Record
from cohort.results.release.runs import headers_of, table_of_runs

CURVES = ("metrics", "cost")
"""The groups of values by round: what was measured, and what it cost."""
TABLES = ("runs", "curves", "clients", "cohorts", "classes", "profiles")
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
    """Rebuild the records that these tables were made of, by digest. Tables that were not made of
    records may raise any error."""
    by_digest = {name: _tables_by_run(table) for name, table in tables.items() if name != "runs"}
    for header, traffic in headers_of(tables["runs"]):
        parts = {name: parts.get(header["digest"]) for name, parts in by_digest.items()}
        history = _history(parts)
        history.traffic = {what: np.array(sizes, np.int64) for what, sizes in traffic.items()}
        clients = _filled_columns(parts["clients"])
        clients["label_counts"] = np.stack(list(clients["label_counts"]))
        yield Record(header, history, clients, _filled_columns(parts.get("classes")))


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


def _tables_by_run(table: pa.Table) -> dict[str, pa.Table]:
    """Split a table that is sorted by digest into one table per run."""
    digests = table["digest"].cast(pa.string()).to_numpy(zero_copy_only=False)
    begins = np.flatnonzero(np.r_[True, digests[1:] != digests[:-1]])
    ends = np.r_[begins[1:], len(digests)]
    return {
        digests[begin]: table.slice(begin, end - begin)
        for begin, end in zip(begins, ends, strict=True)
    }


def _filled_columns(part: pa.Table | None) -> dict[str, np.ndarray]:
    """The columns of one run's rows, without index columns and those that only other runs fill."""
    if part is None:
        return {}
    return {
        name: part[name].to_numpy()
        for name in part.column_names
        if name not in ("digest", "client", "class") and part[name].null_count < len(part)
    }


def _history(parts: Mapping[str, pa.Table | None]) -> History:
    history = History()
    curves, cohorts, profile = parts.get("curves"), parts.get("cohorts"), parts.get("profiles")
    if curves is not None:
        series_of = {"metrics": history.metrics, "cost": history.cost}
        columns = (curves[name].to_numpy() for name in ("group", "metric", "round", "value"))
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
