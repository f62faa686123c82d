"""A release on disk: a folder of Parquet tables with a manifest of their checksums."""

from __future__ import annotations

import contextlib
import math
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import parquet

from cohort.core.errors import UserError
from cohort.core.files import atomic_write, sha256, write_text
from cohort.core.paths import RELEASED
from cohort.core.sealed_json import read_sealed, to_sealed_json
from cohort.core.shipped import ROOT, shipped
from cohort.records.record import SHA256, TEXT, Record
from cohort.results.release.tables import TABLES, records_of, tables_of
from cohort.training.cell import Cell
from cohort.training.evaluators import EVALUATORS

FORMAT = 1
MANIFEST = "manifest.json"
SWAP, NEW, OLD = ".swap", "new", "old"
LICENSE = "CC-BY-4.0"
CITE = "Cite Cohort (CITATION.cff) and the papers whose methods were run (README.md lists them)."
DICTIONARIES = ("digest", "group", "metric")
"""The columns whose values repeat."""
RUN_BYTES, MOST_RUNS = 2**14, 50_000  # of a row of runs.parquet, and of a release
CLASSES = 1000  # at most
WHOLE = {"type": "integer", "minimum": 0}
FILE = {
    "type": "object",
    "properties": {"rows": WHOLE, "bytes": WHOLE, "sha256": {"type": "string", "pattern": SHA256}},
    "required": ["rows", "sha256"],
    "additionalProperties": False,
}
FILES = {
    "type": "object",
    "properties": {f"{name}.parquet": FILE for name in TABLES},
    "required": ["runs.parquet"],
    "additionalProperties": False,
}
KEYS = {
    "format": {"const": FORMAT},
    "name": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,60}$"},
    "runs": {"type": "integer", "minimum": 1, "maximum": MOST_RUNS},
    "license": TEXT,
    "cite": TEXT,
    "files": FILES,
}
SCHEMA = {
    "type": "object",
    "properties": KEYS,
    "required": list(KEYS),
    "additionalProperties": False,
}
"""The manifest, as JSON Schema."""


def write_release(folder: Path, name: str, records: Iterable[Record]) -> None:
    """Write runs as a release: byte for byte the same for the same runs and version of pyarrow.

    It takes the place of an earlier one only when it is complete; other files there stay.
    """
    recover(folder)
    folder, swap = folder.resolve(), _swap_folder(folder)
    shutil.rmtree(swap, ignore_errors=True)  # of an export that was interrupted
    try:
        _write_files(swap / NEW, name, records)
        for file in folder.iterdir() if folder.exists() else ():
            if file.name != MANIFEST and file.suffix != ".parquet":
                copy = shutil.copytree if file.is_dir() else shutil.copy2
                copy(file, swap / NEW / file.name)
    except BaseException:
        shutil.rmtree(swap, ignore_errors=True)
        raise
    if folder.exists():
        folder.rename(swap / OLD)
    (swap / NEW).rename(folder)
    shutil.rmtree(swap)


def recover(folder: Path) -> None:
    """Put a release back in its place if an export was interrupted just before the new one came."""
    old = _swap_folder(folder) / OLD
    if old.exists() and not folder.exists():
        with contextlib.suppress(OSError):  # of a read-only file system
            old.rename(folder)


def release_folders(studies: Container[str]) -> dict[str, Path]:
    """The folder of each study's release: the user's own, or else, of these studies, the one
    shipped with Cohort."""
    names = set()
    for root in (Path(RELEASED), ROOT / RELEASED):
        for swap in root.glob(f".*{SWAP}"):
            recover(root / swap.name[1 : -len(SWAP)])
        released = {file.parent.name for file in root.glob(f"*/{MANIFEST}")}
        names |= {name for name in released if root == Path(RELEASED) or name in studies}
    return {name: shipped(Path(RELEASED, name, MANIFEST)).parent for name in sorted(names)}


def _swap_folder(folder: Path) -> Path:
    """The folder beside a release that holds a new one while it is written, and then the old."""
    folder = folder.resolve()
    return folder.with_name(f".{folder.name}{SWAP}")


def _write_files(folder: Path, name: str, records: Iterable[Record]) -> None:
    """Write the tables and the manifest of a release into a folder."""
    tables = tables_of(records)
    files = {}
    for table_name, table in tables.items():
        file, columns = folder / f"{table_name}.parquet", table.column_names
        with atomic_write(file) as temporary:
            parquet.write_table(
                table,
                temporary,
                compression="zstd",
                compression_level=19,
                use_dictionary=[key for key in DICTIONARIES if key in columns],
                column_encoding={"value": "BYTE_STREAM_SPLIT"} if "value" in columns else None,
            )
        size = file.stat().st_size
        files[file.name] = {"rows": len(table), "bytes": size, "sha256": sha256(file)}
    manifest = {"format": FORMAT, "name": name, "runs": len(tables["runs"])}
    manifest |= {"license": LICENSE, "cite": CITE, "files": files}
    write_text(folder / MANIFEST, to_sealed_json(manifest, indent=1))


def read_release(folder: Path, cells: Mapping[str, Cell] | None = None) -> list[Record]:
    """Read a release's runs, or only those of these cells. Raise UserError unless its checksums fit
    and every run is valid."""
    with _explain(folder):
        return list(records_of(read_tables(folder, cells)))


def released_digests(folder: Path) -> set[str]:
    """The digests of a release's runs; none if it is damaged, as `cohort restore` says."""
    try:
        return set(read_digests(folder))
    except UserError:
        return set()


def read_digests(folder: Path) -> list[str]:
    """The digests of a release's runs. Raise UserError unless its checksums fit."""
    manifest = _check_files(folder)
    with _explain(folder), _open_table(folder / "runs.parquet", manifest, RUN_BYTES) as table:
        digests: list[str] = table.read(columns=["digest"])["digest"].to_pylist()
        return digests


def read_tables(folder: Path, cells: Mapping[str, Cell] | None = None) -> dict[str, pa.Table]:
    """Read the tables of a release by name, or only the rows of these cells, which then say how
    large the tables may be. Raise UserError unless its checksums fit."""
    manifest, most, tables = _check_files(folder), math.inf, {}
    if cells is not None:
        most = max(map(most_bytes, cells.values()))
    for name in manifest["files"]:
        with _explain(folder), _open_table(folder / name, manifest, most) as table:
            if cells is None or len(cells) == manifest["runs"]:
                tables[Path(name).stem] = table.read()
                continue
            planned = pa.array(cells)
            batches = [
                batch.filter(pc.is_in(batch["digest"].cast("string"), planned))
                for batch in table.iter_batches()
            ]
            tables[Path(name).stem] = pa.Table.from_batches(batches).unify_dictionaries()
    return tables


def most_bytes(cell: Cell) -> int:
    """The most memory that a table of a run of this cell takes. Its curves have the values of all
    metrics and costs, its cohorts also pools and norms; a round has a step for each 50 bytes of a
    profile."""
    settings = cell.settings
    curves = 40 * sum(len(kind().rounds(cell)) * len(kind.metrics) for kind in EVALUATORS.values())
    curves += settings.rounds * 40 * 50
    cohorts = settings.rounds * 8 * (2 + 4 * settings.clients)
    profile = settings.rounds * 2**21 * bool(getattr(cell.procedure, "profiled", 0))
    return max(RUN_BYTES, curves, cohorts, settings.clients * 8 * CLASSES, profile)


def _check_files(folder: Path) -> dict[str, Any]:
    """Read a release's manifest. Raise UserError unless its files have the checksums that it
    states."""
    manifest = read_manifest(folder)
    for name, entry in manifest["files"].items():
        file = folder / name
        if not file.is_file():
            raise UserError(f"{file} is missing; {_again(folder)}")
        if sha256(file) != entry["sha256"]:
            raise UserError(f"{file} has another SHA-256 than {MANIFEST} says; {_again(folder)}")
    return manifest


def _open_table(file: Path, manifest: Mapping[str, Any], most: float) -> parquet.ParquetFile:
    """Open a table. Raise ValueError if, by its metadata, it has other rows than the manifest says,
    or a run of it takes more than `most` bytes: a small file may hold any number of rows."""
    metadata = parquet.read_metadata(file)
    rows, runs = manifest["files"][file.name]["rows"], manifest["runs"]
    if metadata.num_rows != rows or (file.name == "runs.parquet" and rows != runs):
        raise ValueError(f"{file.name} has {metadata.num_rows} rows, other than {MANIFEST} says")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    size = sum(_bytes(group.column(n)) for group in groups for n in range(group.num_columns))
    if size > runs * most:
        raise ValueError(f"{file.name} would take {size / 1e6:,.0f} MB, too much for {runs} runs")
    names = [name for name in DICTIONARIES if name in metadata.schema.names]
    return parquet.ParquetFile(file, metadata=metadata, read_dictionary=names)


def _bytes(chunk: parquet.ColumnChunkMetaData) -> int:
    """The most memory that a column takes once it is read: its pages decompressed, 8 bytes for each
    value, or, where they are texts of a dictionary, as much as all of this for each."""
    repeats = chunk.has_dictionary_page and chunk.path_in_schema not in DICTIONARIES
    is_text = chunk.physical_type == "BYTE_ARRAY"
    each = chunk.total_uncompressed_size if repeats and is_text else 8
    return max(chunk.total_uncompressed_size, each * chunk.num_values)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a release's manifest. Raise UserError unless checksum, format and file names are
    valid."""
    recover(folder)
    file = folder / MANIFEST
    if not file.is_file():
        raise UserError(f"{folder} is not a release: it has no {MANIFEST}")
    manifest = read_sealed(file, "the manifest of a release", _again(folder))
    format = manifest.get("format")
    if isinstance(format, int) and format > FORMAT:
        raise UserError(
            f"{file} has format {format}, and this version of Cohort reads {FORMAT}; update Cohort"
        )
    if problem := next(jsonschema.Draft202012Validator(SCHEMA).iter_errors(manifest), None):
        reason = f"{problem.json_path.removeprefix('$.')}: {problem.message:.100}"
        raise UserError(f"{file} is not the manifest of a release ({reason}); {_again(folder)}")
    return manifest


@contextlib.contextmanager
def _explain(folder: Path) -> Iterator[None]:
    """Turn any error of a release into a UserError: tables from outside may raise anything."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"{folder} holds no valid runs ({reason}); {_again(folder)}") from None


def _again(folder: Path) -> str:
    return f"nothing of {folder} was used; get it again"
