"""Records as tables, and back without loss; the same tables as pandas frames. docs/records.md
describes every column."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cohort.records.history import PROFILE, History
from cohort.records.record import FORMAT, Record, check

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("runs", "curves", "clients", "cohorts", "classes", "profiles")
COUNTED = {"client": 0, "class": 0, "round": 1}
"""The columns that count a run's rows, with their first number."""
CLIENT_LISTS = pa.list_(pa.int64())
IDENTITY = ("digest", "status", "weights_sha256", "science")
SECONDS = ("seconds", "seconds_training", "seconds_selecting", "seconds_evaluating")
"""Totals over the rounds, which `curves` holds round by round."""
PROVENANCE = ("commit", "trainer", "devices", "peak_memory_mb", "sessions", "my")
"""The provenance that has columns of its own."""
VERSION = "version_"
"""Prefix of the columns that hold the version of a package."""
FIXED = {*IDENTITY, *SECONDS, *PROVENANCE, "rounds_played", "traffic", "restored"}
"""All columns of `runs` but those of settings and of versions."""
IS_JSON = {b"json": b"true"}
"""Metadata of the columns whose values are JSON texts."""

Row = dict[str, Any]
Columns = dict[str, Any]


@dataclass(frozen=True)
class RunFrames:
    """Finished runs as tidy pandas frames with the columns that docs/records.md lists: `runs` has a
    row per run, the others per value by round, client of a run, round, class, and local step. The
    column `digest` says whose row it is."""

    runs: pd.DataFrame
    curves: pd.DataFrame
    clients: pd.DataFrame
    cohorts: pd.DataFrame
    classes: pd.DataFrame
    profiles: pd.DataFrame

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table]) -> RunFrames:
        """Convert the tables of a release, given by name; one that is missing has no rows. Texts
        take the place of a dictionary's codes, as seaborn likes it."""
        empty = pa.table({"digest": pa.array([], pa.string())})
        frames = []
        for table in (tables.get(field.name, empty) for field in fields(cls)):
            plain = [
                it.with_type(it.type.value_type) if pa.types.is_dictionary(it.type) else it
                for it in table.schema
            ]
            frames.append(table.cast(pa.schema(plain)).to_pandas())
        return cls(*frames)

    def metric(self, *names: str) -> pd.DataFrame:
        """The values of these metrics by round, one row each, with all settings of its run."""
        return self.curves[self.curves["metric"].isin(names)].merge(self.runs, on="digest")


def tables_of(records: Iterable[Record]) -> dict[str, pa.Table]:
    """Convert records to tables by name, each sorted by digest; empty ones are left out."""
    ordered = sorted(records, key=lambda record: record.header["digest"])
    by_table: dict[str, list[pa.Table]] = {name: [] for name in TABLES[1:]}
    for record in ordered:
        for name, columns in _columns_of(record).items():
            if rows := len(next(iter(columns.values()), ())):
                codes = np.zeros(rows, np.int32)
                digests = pa.DictionaryArray.from_arrays(codes, [record.header["digest"]])
                by_table[name].append(pa.table({"digest": digests} | columns))
    tables = {
        name: pa.concat_tables(parts, promote_options="default").combine_chunks()
        for name, parts in by_table.items()
        if parts
    }
    return {"runs": _table_of_runs(ordered)} | tables


def records_of(tables: Mapping[str, pa.Table]) -> Iterator[Record]:
    """Rebuild the records that these tables were made of, by digest. Raise an error for a run that
    is not valid; tables that were not made of records may raise any."""
    by_digest = {name: _tables_by_run(name, table) for name, table in tables.items()}
    strangers = set().union(*by_digest.values()) - by_digest["runs"].keys()
    if strangers:
        raise ValueError(f"runs.parquet has no run {min(strangers)}")
    packed = {field.name for field in tables["runs"].schema if (field.metadata or {}) == IS_JSON}
    for values in tables["runs"].to_pylist():
        row = {name: value for name, value in values.items() if value is not None}
        row |= {name: json.loads(row[name]) for name in packed & row.keys()}
        parts = {name: parts.get(row["digest"]) for name, parts in by_digest.items()}
        try:
            yield _record(row, parts)
        except Exception as error:
            raise ValueError(f"run {row['digest']}: {error}") from error


def _table_of_runs(records: Sequence[Record]) -> pa.Table:
    """The table of these records, a row each: every setting, where it was trained, and its cost."""
    rows = [_row(record) for record in records]
    columns = {}
    for name in sorted({name for row in rows for name in row}, key=_column_order):
        values = [row.get(name) for row in rows]
        types = {type(value) for value in values if value is not None}
        is_json = len(types) > 1 or dict in types or (list in types and name != "devices")
        if is_json:
            packed = functools.partial(json.dumps, sort_keys=True, separators=(",", ":"))
            values = [None if value is None else packed(value) for value in values]
        column = pa.array(values)
        field = pa.field(name, column.type, metadata=IS_JSON if is_json else None)
        columns[field] = column
    return pa.Table.from_arrays([*columns.values()], schema=pa.schema([*columns]))


def _column_order(name: str) -> tuple[int, str]:
    """A sort key: settings come between what identifies a run and what it cost."""
    if name in ("digest", "status", "rounds_played"):
        return 0, name
    return (2 if name in FIXED or name.startswith(VERSION) else 1), name


def _row(record: Record) -> Row:
    header, provenance = record.header, record.header["provenance"]
    return {
        **{name: header[name] for name in (*IDENTITY, "restored") if name in header},
        **header["settings"],
        **{name: provenance[name] for name in PROVENANCE if name in provenance},
        **{VERSION + package: version for package, version in provenance["versions"].items()},
        **_totals(record.history),
        "traffic": {what: sizes.tolist() for what, sizes in record.history.traffic.items()},
    }


def _header(row: Row) -> Row:
    """The record header that a row of `runs` holds."""
    versions = {name: value for name, value in row.items() if name.startswith(VERSION)}
    provenance = {name: row[name] for name in PROVENANCE if name in row}
    provenance["versions"] = {name.removeprefix(VERSION): it for name, it in versions.items()}
    settings = {name: value for name, value in row.items() if name not in {*FIXED, *versions}}
    header = {name: row[name] for name in (*IDENTITY, "restored") if name in row}
    return {"format": FORMAT, "settings": settings, "provenance": provenance} | header


def _totals(history: History) -> dict[str, float]:
    """What a run's row repeats of its rounds: their number, and their seconds by purpose."""
    names = [name for name in SECONDS if name in history.cost]
    seconds = {name: sum(dict(history.cost[name]).values()) for name in names}
    return {"rounds_played": len(history.cohorts), **seconds}


def _columns_of(record: Record) -> dict[str, Columns]:
    """The columns of a record's rows in each table but `runs`."""
    history, classes = record.history, record.classes
    curves = [
        (group, name, *point)
        for group, series in (("metrics", history.metrics), ("cost", history.cost))
        for name in sorted(series)
        for point in series[name]
    ]
    groups, names, rounds, values = zip(*curves, strict=True) if curves else ((),) * 4
    arrays = {name: record.clients[name] for name in sorted(record.clients)}
    cohorts: Columns = {
        "round": np.arange(1, len(history.cohorts) + 1),
        "cohort": pa.array(history.cohorts, CLIENT_LISTS),
    }
    if not history.all_responded():
        cohorts["responders"] = pa.array(history.responders, CLIENT_LISTS)
    if history.pools:
        cohorts["pool"] = pa.array(history.pools, CLIENT_LISTS)
        cohorts["probe_norms"] = pa.array(history.norms, pa.list_(pa.float64()))
    profile = np.concatenate(history.profile).T if history.profile else ()
    return {
        "curves": {
            "group": pa.array(groups, pa.string()).dictionary_encode(),
            "metric": pa.array(names, pa.string()).dictionary_encode(),
            "round": np.array(rounds, np.int64),
            "value": np.array(values, np.float64),
        },
        "clients": {
            "client": np.arange(len(arrays["size"])),
            **{name: array if array.ndim == 1 else list(array) for name, array in arrays.items()},
        },
        "cohorts": cohorts,
        "classes": {"class": np.arange(len(classes["tested"])), **classes} if classes else {},
        "profiles": dict(zip(PROFILE, profile, strict=True)) if history.profile else {},
    }


def _record(row: Row, parts: Mapping[str, pa.Table | None]) -> Record:
    """Rebuild the record of one run, and check it."""
    for name in ("curves", "clients", "cohorts"):
        if parts.get(name) is None:
            raise ValueError(f"it has no rows in {name}.parquet")
    history = _history(parts)
    for what, sizes in row.get("traffic", {}).items():
        history.traffic[what] = np.array(sizes, np.int64)
    clients = _filled_columns(parts["clients"])
    clients["label_counts"] = np.stack(list(clients["label_counts"]))
    record = Record(_header(row), history, clients, _filled_columns(parts.get("classes")))
    check(record)
    for name, total in _totals(history).items():
        if not math.isclose(row.get(name, 0), total, rel_tol=1e-9):
            raise ValueError(f"{name} is {row.get(name)}, but {total} by its rounds")
    return record


def _history(parts: Mapping[str, Any]) -> History:
    history, curves, profile = History(), parts["curves"], parts.get("profiles")
    series_of = {"metrics": history.metrics, "cost": history.cost}
    if any(column.null_count for column in curves.columns):
        raise ValueError("curves.parquet lacks values")
    if not pa.types.is_integer(curves["round"].type):
        raise ValueError("round is not a whole number")
    columns = (curves[name].to_numpy().tolist() for name in ("group", "metric", "round", "value"))
    for group, name, round, value in zip(*columns, strict=True):
        series_of[group][name].append((round, value))
    filled = _filled_columns(parts["cohorts"])
    history.cohorts = list(filled["cohort"])
    history.responders = list(filled.get("responders", filled["cohort"]))
    history.pools = list(filled.get("pool", ()))
    history.norms = list(filled.get("probe_norms", ()))
    if profile is not None:
        history.profile = [np.stack([profile[name].to_numpy() for name in PROFILE], axis=1)]
    return history


def _tables_by_run(name: str, table: pa.Table) -> dict[str, pa.Table]:
    """Split a table, which must be sorted by digest, into one table per run."""
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
    columns: dict[str, np.ndarray] = {}
    if part is None:
        return columns
    for name in part.column_names:
        gaps, values = part[name].null_count, part[name].to_numpy()
        if 0 < gaps < len(part):
            raise ValueError(f"{name} lacks values")
        if name in COUNTED:
            if values.tolist() != list(range(COUNTED[name], len(part) + COUNTED[name])):
                raise ValueError(f"the rows are not sorted by {name}")
        elif name != "digest" and not gaps:
            columns[name] = values
    return columns
