"""A release on disk: a folder of Parquet tables with a manifest of their checksums."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from cohort.core.errors import UserError
from cohort.core.files import atomic_write, sha256, write_text
from cohort.core.paths import RELEASED
from cohort.core.sealed_json import read_sealed, to_sealed_json
from cohort.core.shipped import ROOT, shipped
from cohort.records.record import Record, check
from cohort.results.release.tables import TABLES, records_of, tables_of

FORMAT = 1
MANIFEST = "manifest.json"
SWAP, NEW, OLD = ".swap", "new", "old"
LICENSE = "CC-BY-4.0"
CITE = "Cite Cohort (CITATION.cff) and the papers whose methods were run (README.md lists them)."
DICTIONARIES = ("digest", "group", "metric")
"""The columns whose values repeat."""


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
                _copy(file, swap / NEW / file.name)
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


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)


def _write_files(folder: Path, name: str, records: Iterable[Record]) -> None:
    """Write the tables and the manifest of a release into a folder."""
    tables = tables_of(records)
    files = {}
    for table_name, table in tables.items():
        file = folder / f"{table_name}.parquet"
        encodings = {"value": "BYTE_STREAM_SPLIT"} if "value" in table.column_names else None
        with atomic_write(file) as temporary:
            parquet.write_table(
                table,
                temporary,
                compression="zstd",
                compression_level=19,
                use_dictionary=[key for key in DICTIONARIES if key in table.column_names],
                column_encoding=encodings,
            )
        size = file.stat().st_size
        files[file.name] = {"rows": len(table), "bytes": size, "sha256": sha256(file)}
    manifest = {
        "format": FORMAT,
        "name": name,
        "runs": len(tables["runs"]),
        "license": LICENSE,
        "cite": CITE,
        "files": files,
    }
    write_text(folder / MANIFEST, to_sealed_json(manifest, indent=1))


def read_release(folder: Path) -> list[Record]:
    """Read a release's runs. Raise UserError unless its checksums fit and every run is valid."""
    try:
        records = list(records_of(read_tables(folder)))
        for record in records:
            check(record)
    except UserError:
        raise
    except Exception as error:  # tables from outside may raise anything
        raise _invalid(folder, error) from None
    return records


def released_digests(folder: Path) -> set[str]:
    """The digests of a release's runs, without their numbers; none if it is damaged, as `cohort
    restore` says."""
    try:
        read_manifest(folder)
        with parquet.ParquetFile(folder / "runs.parquet") as file:  # `read_table` imports pandas
            return set(file.read(columns=["digest"])["digest"].to_pylist())
    except Exception:  # tables from outside may raise anything
        return set()


def read_tables(folder: Path) -> dict[str, pa.Table]:
    """Read the tables of a release by name. Raise UserError unless its checksums fit."""
    manifest = read_manifest(folder)
    for name, entry in manifest["files"].items():
        file = folder / name
        if not file.is_file():
            raise UserError(f"{file} is missing; {_again(folder)}")
        if sha256(file) != entry["sha256"]:
            raise UserError(f"{file} has another SHA-256 than {MANIFEST} says; {_again(folder)}")
    try:
        return {Path(name).stem: parquet.read_table(folder / name) for name in manifest["files"]}
    except Exception as error:
        raise _invalid(folder, error) from None


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
    if format != FORMAT or not _are_tables(manifest.get("files")):
        raise UserError(f"{file} is not the manifest of a release; {_again(folder)}")
    return manifest


def _are_tables(files: Any) -> bool:
    """Whether these are the files of a release, each with a checksum, and its size if it was
    exported by a version that states it."""
    allowed = {f"{name}.parquet" for name in TABLES}
    return (
        isinstance(files, Mapping)
        and {"runs.parquet"} <= files.keys() <= allowed
        and all(isinstance(entry, Mapping) and "sha256" in entry for entry in files.values())
        and all(isinstance(entry.get("bytes", 0), int) for entry in files.values())
    )


def _invalid(folder: Path, error: Exception) -> UserError:
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return UserError(f"{folder} holds no valid runs ({reason}); {_again(folder)}")


def _again(folder: Path) -> str:
    return f"nothing of {folder} was used; get it again"
