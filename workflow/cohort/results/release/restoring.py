"""Restore the runs of a release as records of planned cells."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cohort.core.errors import UserError
from cohort.core.files import sha256
from cohort.core.paths import digest_in, state_folder
from cohort.core.progress import tracked
from cohort.records.record import Record, read, write
from cohort.results.differences import is_same
from cohort.results.release.folder import MANIFEST, read_release
from cohort.training.cell import Cell
from cohort.training.job.lease import lease


@dataclass
class RestoreOutcome:
    """What became of the runs of a release, by digest: those restored, those that have a record
    here already, the same or another one, those that no study plans, and those in training here."""

    restored: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    different: dict[str, tuple[Record, Record]] = field(default_factory=dict)
    unplanned: list[str] = field(default_factory=list)
    training: list[str] = field(default_factory=list)


def restore(folder: Path, address: str, cells: Mapping[str, Cell]) -> RestoreOutcome:
    """Write a record for each run of a release that is planned and has none. Records name `address`
    as their source.

    Nothing is written unless all runs are valid and have the settings of their digests. A record
    that exists stays; one that was restored itself, and is the same, names this release too.
    """
    records = read_release(folder)
    for record in records:
        cell = cells.get(record.header["digest"])
        if cell is not None and (names := sorted(_conflicts(record, cell))):
            raise UserError(
                f"{address}: the settings of run {cell.digest} do not give this digest "
                f"({', '.join(names)}); nothing was restored"
            )
    outcome, new, named = RestoreOutcome(), {}, {}
    release = {"release": address, "manifest_sha256": sha256(folder / MANIFEST)}
    for record in records:
        digest = record.header["digest"]
        source = release | _provenance(record)
        if digest not in cells:
            outcome.unplanned.append(digest)
        elif Path(path := cells[digest].path).exists():
            here = read(path)
            if not is_same(here, record):
                outcome.different[digest] = here, record
                continue
            outcome.present.append(digest)
            if source not in here.header.get("restored", [source]):
                named[path] = _with_release(here, source)
        else:
            new[path] = _with_release(record, source)
    with ThreadPoolExecutor() as pool:  # most of the time a write waits for the disk
        list(pool.map(write, named.keys(), named.values()))
        written = pool.map(_write_new, new.keys(), new.values())
        for path, is_written in zip(new, tracked(written, "restoring", len(new)), strict=True):
            (outcome.restored if is_written else outcome.training).append(digest_in(path))
    return outcome


def _write_new(path: str, record: Record) -> bool:
    """Write the record of a cell and return True, unless a process trains the cell or has just
    written its record."""
    folder = state_folder(path)
    try:
        with lease(folder, waiting=_give_up):
            if is_new := not Path(path).exists():
                write(path, record)
    except BlockingIOError:
        return False
    with contextlib.suppress(OSError):  # it has a checkpoint, or another process waits there
        folder.rmdir()
    return is_new


def _give_up() -> None:
    raise BlockingIOError


def _conflicts(record: Record, cell: Cell) -> Iterator[str]:
    """Yield the names of settings and science versions in which a run contradicts its planned cell.
    A parameter that only one of them has is at its default, as their digests are equal."""
    stated = record.header["settings"] | record.header["science"]
    expected: dict[str, Any] = cell.plain_settings() | cell.science
    for name, value in stated.items():
        other = expected.get(name)
        if isinstance(value, dict) and isinstance(other, dict):
            value = {key: inner for key, inner in value.items() if key in other}
            other = {key: other[key] for key in value}
        if value != other:
            yield name


def _provenance(record: Record) -> dict[str, Any]:
    """The provenance of a run, and the hash of its weights, for comparing two runs."""
    provenance = record.header["provenance"]
    return {
        "weights_sha256": record.header["weights_sha256"],
        **{name: provenance[name] for name in ("commit", "trainer", "devices", "versions")},
    }


def _with_release(record: Record, source: Mapping[str, Any]) -> Record:
    """The record with one more release listed under `restored` in its header."""
    sources = [*record.header.get("restored", []), dict(source)]
    return replace(record, header=record.header | {"restored": sources})
