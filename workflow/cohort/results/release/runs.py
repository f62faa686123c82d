"""The table `runs`: a row per run, with every setting, where it was trained, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from cohort.records.history import History
from cohort.records.record import FORMAT, Record

SECONDS = ("seconds", "seconds_training", "seconds_selecting", "seconds_evaluating")
"""Totals over the rounds, which `curves` holds round by round."""
PLAIN = ("commit", "trainer", "devices", "peak_memory_mb")
"""The provenance that has columns of its own."""
PACKED = ("sessions", "my")
"""The provenance that is stored as JSON."""
VERSION = "version_"
"""Prefix of the columns that hold the version of a package."""
FIXED = {
    *("digest", "status", "rounds_played", "science", "weights_sha256", "traffic", "restored"),
    *(*SECONDS, *PLAIN, *PACKED),
}
"""All columns but those of settings and of versions."""
IS_JSON = {b"json": b"true"}
"""Metadata of the columns whose values are JSON texts."""

Row = dict[str, Any]


def table_of_runs(records: Sequence[Record]) -> pa.Table:
    """The table of these records, in their order."""
    rows = [_row(record) for record in records]
    names = sorted({name for row in rows for name in row}, key=_column_order)
    fields, columns = [], []
    for name in names:
        values = [row.get(name) for row in rows]
        types = {type(value) for value in values if value is not None}
        is_json = len(types) > 1 or dict in types or (list in types and name != "devices")
        if is_json:
            values = [None if value is None else _packed(value) for value in values]
        column = pa.array(values)
        columns.append(column)
        fields.append(pa.field(name, column.type, metadata=IS_JSON if is_json else None))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def headers_of(table: pa.Table) -> Iterator[tuple[Row, Row]]:
    """Rebuild each run's record header from the table, with all that its row holds."""
    packed = {field.name for field in table.schema if (field.metadata or {}) == IS_JSON}
    for row in table.to_pylist():
        values = {name: value for name, value in row.items() if value is not None}
        values |= {name: json.loads(values[name]) for name in packed & values.keys()}
        yield _header(values), values


def totals(history: History) -> dict[str, float]:
    """What a run's row repeats of its rounds: their number, and their seconds by purpose."""
    seconds = {
        name: sum(dict(history.cost[name]).values()) for name in SECONDS if name in history.cost
    }
    return {"rounds_played": len(history.cohorts), **seconds}


def _row(record: Record) -> Row:
    header, history = record.header, record.history
    provenance = header["provenance"]
    return {
        **{name: header[name] for name in ("digest", "status", "weights_sha256", "science")},
        **({"restored": header["restored"]} if "restored" in header else {}),
        **header["settings"],
        **{name: provenance[name] for name in (*PLAIN, *PACKED) if name in provenance},
        **{VERSION + package: version for package, version in provenance["versions"].items()},
        **totals(history),
        "traffic": {what: sizes.tolist() for what, sizes in history.traffic.items()},
    }


def _header(values: Row) -> Row:
    provenance = {name: values[name] for name in (*PLAIN, *PACKED) if name in values}
    versions = {
        name.removeprefix(VERSION): value
        for name, value in values.items()
        if name.startswith(VERSION)
    }
    settings = {
        name: value
        for name, value in values.items()
        if name not in FIXED and not name.startswith(VERSION)
    }
    return {
        "format": FORMAT,
        **{name: values[name] for name in ("digest", "status", "weights_sha256", "science")},
        **({"restored": values["restored"]} if "restored" in values else {}),
        "settings": settings,
        "provenance": provenance | {"versions": versions},
    }


def _column_order(name: str) -> tuple[int, str]:
    """A sort key: settings come between what identifies a run and what it cost."""
    if name in ("digest", "status", "rounds_played"):
        return 0, name
    return (2 if name in FIXED or name.startswith(VERSION) else 1), name


def _packed(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
