"""A release: runs as tables, and back without loss, in a folder of Parquet files with a manifest of
their checksums; the same tables as pandas frames. docs/records.md describes every column."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import parquet

from cohort.core.errors import UserError, check_allowed
from cohort.core.files import sha256, write_text
from cohort.core.paths import RELEASED
from cohort.core.sealed_json import explain_unreadable, read_sealed, to_sealed_json
from cohort.core.shipped import ROOT, shipped
from cohort.records.history import PROFILE, History
from cohort.records.record import FORMAT as RECORD_FORMAT
from cohort.records.record import SHA256, TEXT, Record, check, object_schema

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("runs", "curves", "clients", "cohorts", "classes", "profiles")
INDEX_COLUMNS = {"client": 0, "class": 0, "round": 1}
"""Columns that number a run's rows, and the first number of each."""
CLIENT_LISTS = pa.list_(pa.int64())
IDENTITY = ("digest", "status", "weights_sha256", "science")
SECONDS = ("seconds", "seconds_training", "seconds_selecting", "seconds_evaluating")
"""Totals over the rounds, which `curves` holds round by round."""
PROVENANCE = ("commit", "trainer", "devices", "peak_memory_mb", "sessions", "my")
"""The provenance that has columns of its own."""
VERSION = "version_"
"""Prefix of the columns that hold the version of a package."""
NON_SETTINGS = {*IDENTITY, *SECONDS, *PROVENANCE, "rounds_played", "traffic", "restored"}
"""All columns of `runs` but those of settings and of versions."""
IS_JSON = {b"json": b"true"}
"""Metadata of the columns whose values are JSON texts."""

Row = dict[str, Any]
Columns = dict[str, Any]

FORMAT = 1
MANIFEST, KIND = "manifest.json", "the runs of a release"
LICENSE = "CC-BY-4.0"
CITE = "Cite Cohort (CITATION.cff) and the papers whose methods were run (README.md lists them)."
DICTIONARIES = ("digest", "group", "metric")
"""The columns whose values repeat."""
BYTE_SPLIT = ("value", "probe_norms.list.element")
"""The columns of floats whose bytes are stored apart, as that compresses better."""
WHOLE = {"type": "integer", "minimum": 0}
HASH = {"type": "string", "pattern": SHA256}
FILE = object_schema("bytes", rows=WHOLE, bytes=WHOLE, sha256=HASH)
FILES = {f"{name}.parquet": FILE for name in TABLES}
SCHEMA = object_schema(
    format={"const": FORMAT},
    name={"type": "string", "pattern": "^[a-z][a-z0-9_]{0,60}$"},
    runs={"type": "integer", "minimum": 1},
    license=TEXT,
    cite=TEXT,
    files=object_schema(*(FILES.keys() - {"runs.parquet"}), **FILES),
)
"""The manifest, as JSON Schema."""


def write_release(folder: Path, name: str, records: Iterable[Record]) -> None:
    """Write runs as a release, of the same bytes for the same runs and version of pyarrow. An
    earlier release is replaced, its manifest last, once all is written; other files stay."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as new:
        tables, files = tables_of(records), {}
        for table_name, table in tables.items():
            file, columns = Path(new, f"{table_name}.parquet"), table.column_names
            parquet.write_table(
                table,
                file,
                compression="zstd",
                compression_level=19,
                use_dictionary=[key for key in DICTIONARIES if key in columns],
                column_encoding=dict.fromkeys(BYTE_SPLIT, "BYTE_STREAM_SPLIT"),
            )
            size = file.stat().st_size
            files[file.name] = {"rows": len(table), "bytes": size, "sha256": sha256(file)}
        manifest = {"format": FORMAT, "name": name, "runs": len(tables["runs"])}
        manifest |= {"license": LICENSE, "cite": CITE, "files": files}
        write_text(Path(new, MANIFEST), to_sealed_json(manifest, indent=1))
        for written in (*files, MANIFEST):
            Path(new, written).replace(folder / written)
    for file in folder.glob("*.parquet"):
        if file.name not in files:
            file.unlink()


def release_folders(studies: Iterable[str]) -> dict[str, Path]:
    """The folders of the user's releases and of the shipped ones of these studies, by study."""
    pattern = f"[!.]*/{MANIFEST}"
    names = {file.parent.name for file in (ROOT / RELEASED).glob(pattern)}.intersection(studies)
    names |= {file.parent.name for file in Path(RELEASED).glob(pattern)}
    return {name: shipped(Path(RELEASED, name, MANIFEST)).parent for name in sorted(names)}


def read_release(folder: Path, digests: Collection[str] | None = None) -> list[Record]:
    """Read the runs of a release, or those with these digests; UserError if any is not valid."""
    tables = read_tables(folder, digests)
    with explain_unreadable(folder, KIND, _again(folder)):
        return list(records_of(tables))


def read_digests(folder: Path) -> list[str]:
    """The digests of a release's runs. Raise UserError unless its checksums fit."""
    manifest = _check_files(folder)
    with explain_unreadable(folder, KIND, _again(folder)):
        runs = _open_table(folder / "runs.parquet", manifest)
        return runs.read(columns=["digest"])["digest"].to_pylist()


def read_tables(folder: Path, digests: Collection[str] | None = None) -> dict[str, pa.Table]:
    """Read the tables of a release by name, or only the rows of runs with these digests. Raise
    UserError unless its checksums fit."""
    manifest, tables = _check_files(folder), {}
    for name in manifest["files"]:
        with explain_unreadable(folder, KIND, _again(folder)):
            rows = _open_table(folder / name, manifest).read()
            if digests is not None and len(digests) < manifest["runs"]:
                rows = rows.filter(pc.is_in(rows["digest"].cast("string"), pa.array(list(digests))))
            tables[Path(name).stem] = rows
    return tables


def _check_files(folder: Path) -> dict[str, Any]:
    """Read a release's manifest. Raise UserError unless its files have its checksums."""
    manifest = read_manifest(folder)
    for name, entry in manifest["files"].items():
        file = folder / name
        if not file.is_file():
            raise UserError(f"{file} is missing; {_again(folder)}")
        if sha256(file) != entry["sha256"]:
            raise UserError(f"{file} has another SHA-256 than {MANIFEST} says; {_again(folder)}")
    return manifest


def _open_table(file: Path, manifest: dict[str, Any]) -> parquet.ParquetFile:
    """Open a table. Raise ValueError if it has other rows than the manifest says."""
    names = set(DICTIONARIES).intersection(parquet.read_schema(file).names)
    table = parquet.ParquetFile(file, read_dictionary=sorted(names))
    rows, runs = manifest["files"][file.name]["rows"], manifest["runs"]
    if table.metadata.num_rows != rows or (file.name == "runs.parquet" and rows != runs):
        raise ValueError(f"{file.name} has {table.metadata.num_rows} rows, not as {MANIFEST} says")
    return table


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a release's manifest. Raise UserError unless checksum, format and names are valid."""
    file = folder / MANIFEST
    if not file.is_file():
        reason = f"it has no {MANIFEST}" if folder.is_dir() else "it does not exist"
        raise UserError(f"{folder} is not a release: {reason}")
    manifest = read_sealed(file, "the manifest of a release", _again(folder))
    if problem := next(jsonschema.Draft202012Validator(SCHEMA).iter_errors(manifest), None):
        reason = f"{problem.json_path.removeprefix('$.')}: {problem.message:.100}"
        raise UserError(f"{file} is not the manifest of a release ({reason}); {_again(folder)}")
    return manifest


def _again(folder: Path) -> str:
    return f"nothing of {folder} was used; get it again"


@dataclass(frozen=True)
class RunFrames:
    """Finished runs as tidy pandas frames with the columns that docs/records.md lists: a row per
    run, value by round, client of a run, round, class, and local step, with the run's `digest`."""

    runs: pd.DataFrame
    curves: pd.DataFrame
    clients: pd.DataFrame
    cohorts: pd.DataFrame
    classes: pd.DataFrame
    profiles: pd.DataFrame

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table]) -> RunFrames:
        """Convert the tables of a release, given by name; one that is missing has no rows. Texts
        replace a dictionary's codes, as seaborn likes it."""
        empty = pa.table({"digest": pa.array([], pa.string())})
        frames = []
        for table in (tables.get(field.name, empty) for field in fields(cls)):
            frame = table.to_pandas()
            frames.append(frame.astype(dict.fromkeys(frame.select_dtypes("category"), "str")))
        return cls(*frames)

    def metric(self, *names: str) -> pd.DataFrame:
        """The values of these metrics by round, one row each, with all settings of its run."""
        metrics = self.curves["metric"].unique() if len(self.curves) else ()
        for name in names:
            check_allowed(name, metrics, f"no run here has the metric '{name}'")
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
    names, columns = {name for row in rows for name in row}, {}
    ends = {name for name in names if name in NON_SETTINGS or name.startswith(VERSION)}
    first = names & {"digest", "status", "rounds_played"}
    for name in [*sorted(first), *sorted(names - ends), *sorted(ends - first)]:
        values = [row.get(name) for row in rows]
        types = {type(value) for value in values if value is not None}
        is_json = len(types) > 1 or dict in types or (list in types and name != "devices")
        if is_json:
            packed = functools.partial(json.dumps, sort_keys=True, separators=(",", ":"))
            values = [None if value is None else packed(value) for value in values]
        column = pa.array(values)
        columns[pa.field(name, column.type, metadata=IS_JSON if is_json else None)] = column
    return pa.Table.from_arrays([*columns.values()], schema=pa.schema([*columns]))


def _row(record: Record) -> Row:
    header, history, provenance = record.header, record.history, record.header["provenance"]
    return {
        **{name: header[name] for name in (*IDENTITY, "restored") if name in header},
        **header["settings"],
        **{name: provenance[name] for name in PROVENANCE if name in provenance},
        **{VERSION + package: version for package, version in provenance["versions"].items()},
        "rounds_played": len(history.cohorts),
        **{
            name: sum(dict(history.cost[name]).values()) for name in SECONDS if name in history.cost
        },
        "traffic": {payload: sizes.tolist() for payload, sizes in history.traffic.items()},
    }


def _header(row: Row) -> Row:
    """The record header that a row of `runs` holds."""
    versions = {name: value for name, value in row.items() if name.startswith(VERSION)}
    provenance = {name: row[name] for name in PROVENANCE if name in row}
    provenance["versions"] = {name.removeprefix(VERSION): text for name, text in versions.items()}
    settings = {key: value for key, value in row.items() if key not in {*NON_SETTINGS, *versions}}
    header = {name: row[name] for name in (*IDENTITY, "restored") if name in row}
    return {"format": RECORD_FORMAT, "settings": settings, "provenance": provenance} | header


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
        cohorts["probe_norms"] = pa.array(history.norms, pa.list_(pa.float32()))
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


def _record(row: Row, parts: Mapping[str, Any]) -> Record:
    """Rebuild the record of one run, and check it."""
    for name in ("curves", "clients", "cohorts"):
        if parts.get(name) is None:
            raise ValueError(f"it has no rows in {name}.parquet")
    history, curves, profile = History(), parts["curves"], parts.get("profiles")
    series_of = {"metrics": history.metrics, "cost": history.cost}
    if any(column.null_count for column in curves.columns):
        raise ValueError("curves.parquet lacks values")
    if not pa.types.is_integer(curves["round"].type):
        raise ValueError("round is not a whole number")
    columns = (curves[name].to_numpy().tolist() for name in ("group", "metric", "round", "value"))
    for group, name, round, value in zip(*columns, strict=True):
        series_of[group][name].append((round, value))
    cohorts = _filled_columns(parts["cohorts"])
    history.cohorts = list(cohorts["cohort"])
    history.responders = list(cohorts.get("responders", cohorts["cohort"]))
    history.pools = list(cohorts.get("pool", ()))
    history.norms = list(cohorts.get("probe_norms", ()))
    if profile is not None:
        history.profile = [np.stack([profile[name].to_numpy() for name in PROFILE], axis=1)]
    for payload, sizes in row.get("traffic", {}).items():
        history.traffic[payload] = np.array(sizes, np.int64)
    clients = _filled_columns(parts["clients"])
    clients["label_counts"] = np.stack(list(clients["label_counts"]))
    record = Record(_header(row), history, clients, _filled_columns(parts.get("classes")))
    check(record)
    return record


def _tables_by_run(name: str, table: pa.Table) -> dict[str, pa.Table]:
    """Split a table, which must be sorted by digest, into one table per run."""
    encoded = pc.run_end_encode(table["digest"].cast(pa.string()).combine_chunks())
    digests, ends = encoded.values.to_pylist(), encoded.run_ends.to_pylist()
    if digests != sorted(set(digests)) or (name == "runs" and len(digests) < len(table)):
        raise ValueError(f"{name}.parquet is not sorted by digest, or has a run twice")
    parts = zip(digests, [0, *ends[:-1]], ends, strict=True)
    return {digest: table.slice(begin, end - begin) for digest, begin, end in parts}


def _filled_columns(part: pa.Table | None) -> dict[str, np.ndarray]:
    """The columns of one run's rows, without index columns and those that only other runs fill."""
    columns: dict[str, np.ndarray] = {}
    if part is None:
        return columns
    for name in part.column_names:
        gaps, values, first = part[name].null_count, part[name].to_numpy(), INDEX_COLUMNS.get(name)
        if 0 < gaps < len(part):
            raise ValueError(f"{name} lacks values")
        if first is not None and values.tolist() != list(range(first, len(part) + first)):
            raise ValueError(f"the rows are not sorted by {name}")
        if name != "digest" and first is None and not gaps:
            columns[name] = values
    return columns
