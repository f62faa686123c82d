"""A release on disk: a folder of Parquet tables with a manifest of their checksums."""

import contextlib
import tempfile
from collections.abc import Collection, Container, Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import parquet

from cohort.core.errors import UserError
from cohort.core.files import sha256, write_text
from cohort.core.paths import RELEASED
from cohort.core.sealed_json import read_sealed, to_sealed_json
from cohort.core.shipped import ROOT, shipped
from cohort.records.record import SHA256, TEXT, Record, object_schema
from cohort.results.release.tables import TABLES, records_of, tables_of

FORMAT = 1
MANIFEST = "manifest.json"
LICENSE = "CC-BY-4.0"
CITE = "Cite Cohort (CITATION.cff) and the papers whose methods were run (README.md lists them)."
DICTIONARIES = ("digest", "group", "metric")
"""The columns whose values repeat."""
RUN_BYTES, MOST_RUNS = 2**26, 50_000  # of a run in a table that is read, and of a release
WHOLE = {"type": "integer", "minimum": 0}
HASH = {"type": "string", "pattern": SHA256}
FILE = object_schema("bytes", rows=WHOLE, bytes=WHOLE, sha256=HASH)
FILES = {f"{name}.parquet": FILE for name in TABLES}
SCHEMA = object_schema(
    format={"const": FORMAT},
    name={"type": "string", "pattern": "^[a-z][a-z0-9_]{0,60}$"},
    runs={"type": "integer", "minimum": 1, "maximum": MOST_RUNS},
    license=TEXT,
    cite=TEXT,
    files=object_schema(*(FILES.keys() - {"runs.parquet"}), **FILES),
)
"""The manifest, as JSON Schema."""


def write_release(folder: Path, name: str, records: Iterable[Record]) -> None:
    """Write runs as a release: byte for byte the same for the same runs and version of pyarrow. It
    replaces an earlier one only when all of it is written; other files there stay."""
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
                column_encoding={"value": "BYTE_STREAM_SPLIT"} if "value" in columns else None,
            )
            size = file.stat().st_size
            files[file.name] = {"rows": len(table), "bytes": size, "sha256": sha256(file)}
        manifest = {"format": FORMAT, "name": name, "runs": len(tables["runs"])}
        manifest |= {"license": LICENSE, "cite": CITE, "files": files}
        write_text(Path(new, MANIFEST), to_sealed_json(manifest, indent=1))
        for file in Path(new).iterdir():
            file.replace(folder / file.name)
    for file in folder.glob("*.parquet"):
        if file.name not in files:
            file.unlink()


def release_folders(studies: Container[str]) -> dict[str, Path]:
    """The folder of each study's release: the user's own, or else, of these studies, the one
    shipped with Cohort."""
    names = set()
    for root in (Path(RELEASED), ROOT / RELEASED):
        released = {file.parent.name for file in root.glob(f"*/{MANIFEST}")}
        names |= {name for name in released if root == Path(RELEASED) or name in studies}
    return {name: shipped(Path(RELEASED, name, MANIFEST)).parent for name in sorted(names)}


def read_release(folder: Path, digests: Collection[str] | None = None) -> list[Record]:
    """Read a release's runs, or only those with these digests. Raise UserError unless its checksums
    fit and every run is valid."""
    with _explain(folder):
        return list(records_of(read_tables(folder, digests)))


def released_digests(folder: Path) -> set[str]:
    """The digests of a release's runs; none if it is damaged, as `cohort restore` says."""
    try:
        return set(read_digests(folder))
    except UserError:
        return set()


def read_digests(folder: Path) -> list[str]:
    """The digests of a release's runs. Raise UserError unless its checksums fit."""
    manifest = _check_files(folder)
    with _explain(folder), _open_table(folder / "runs.parquet", manifest) as table:
        digests: list[str] = table.read(columns=["digest"])["digest"].to_pylist()
        return digests


def read_tables(folder: Path, digests: Collection[str] | None = None) -> dict[str, pa.Table]:
    """Read the tables of a release by name, or only the rows of runs with these digests. Raise
    UserError unless its checksums fit."""
    manifest, tables = _check_files(folder), {}
    for name in manifest["files"]:
        with _explain(folder), _open_table(folder / name, manifest) as table:
            if digests is None or len(digests) == manifest["runs"]:
                tables[Path(name).stem] = table.read()
                continue
            planned = pa.array(list(digests))
            batches = [
                batch.filter(pc.is_in(batch["digest"].cast("string"), planned))
                for batch in table.iter_batches()
            ]
            tables[Path(name).stem] = pa.Table.from_batches(batches).unify_dictionaries()
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
    """Open a table. Raise ValueError if, by its metadata, it has other rows than the manifest says,
    or takes too much memory for so many runs: a small file may hold any number of rows."""
    metadata, runs = parquet.read_metadata(file), manifest["runs"]
    rows = manifest["files"][file.name]["rows"]
    if metadata.num_rows != rows or (file.name == "runs.parquet" and rows != runs):
        raise ValueError(f"{file.name} has {metadata.num_rows} rows, other than {MANIFEST} says")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    size = sum(max(chunk.total_uncompressed_size, 8 * chunk.num_values) for chunk in chunks)
    if size > runs * RUN_BYTES:
        raise ValueError(f"{file.name} would take {size / 1e6:,.0f} MB, too much for {runs} runs")
    names = [name for name in DICTIONARIES if name in metadata.schema.names]
    return parquet.ParquetFile(file, metadata=metadata, read_dictionary=names)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a release's manifest. Raise UserError unless checksum, format and file names are
    valid."""
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
