"""Restore the runs of a release as records of planned cells."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cohort.core.errors import UserError
from cohort.core.files import sha256
from cohort.core.paths import digest_in, state_folder
from cohort.core.process import tracked
from cohort.records.record import Record, read, write
from cohort.results.collect import is_same, settings_with_defaults
from cohort.results.release.checking import Dealt, check_dealt, check_run
from cohort.results.release.folder import MANIFEST, read_digests, read_release
from cohort.training.cell import Cell
from cohort.training.job.lease import lease

PROVEN = ("weights_sha256", "restored")


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
    digests = read_digests(folder)
    planned = {digest: cells[digest] for digest in digests if digest in cells}
    records, dealt = read_release(folder, planned) if planned else [], Dealt()
    for record in records:
        cell = planned[record.header["digest"]]
        try:
            _check_settings(record, cell)
            check_run(record, cell)
            check_dealt(record, cell, dealt)
        except UserError as error:
            raise UserError(f"{address}: {error}; nothing was restored") from None
    outcome, new, named = RestoreOutcome(), {}, {}
    outcome.unplanned = [digest for digest in digests if digest not in cells]
    release = {"release": address, "manifest_sha256": sha256(folder / MANIFEST)}
    for record in records:
        digest = record.header["digest"]
        # For comparing two runs, and from where it had been restored before it was released.
        known, provenance = record.header, record.header["provenance"]
        source = release | {key: known[key] for key in PROVEN if key in known}
        source |= {key: provenance[key] for key in ("commit", "trainer", "devices", "versions")}
        if not Path(path := cells[digest].path).exists():
            new[path] = replace(record, header=known | {"restored": [source]})
        elif not is_same(here := read(path), record):
            outcome.different[digest] = here, record
        else:
            outcome.present.append(digest)
            sources = here.header.get("restored", [source])
            if source not in sources:
                named[path] = replace(here, header=here.header | {"restored": [*sources, source]})
    with ThreadPoolExecutor() as pool:  # most of the time a write waits for the disk
        list(pool.map(write, named.keys(), named.values()))
        written = pool.map(_write_new, new.keys(), new.values())
        for path, is_written in zip(new, tracked(written, "restoring", len(new)), strict=True):
            (outcome.restored if is_written else outcome.training).append(digest_in(path))
    return outcome


def _write_new(path: str, record: Record) -> bool:
    """Write the record of a cell and return True, unless a process trains the cell or has just
    written its record."""

    def give_up() -> None:
        raise BlockingIOError

    folder = state_folder(path)
    try:
        with lease(folder, waiting=give_up):
            if is_new := not Path(path).exists():
                write(path, record)
    except BlockingIOError:
        return False
    with contextlib.suppress(OSError):  # it has a checkpoint, or another process waits there
        folder.rmdir()
    return is_new


def _check_settings(record: Record, cell: Cell) -> None:
    """Raise UserError if settings or science versions of a run contradict its planned cell. A
    setting that one of them lacks is at its default, and such a version is 1."""
    try:
        stated = settings_with_defaults(record.header["settings"])
    except Exception as error:  # a part of its strategy is of a wrong type
        raise UserError(f"the settings of run {cell.digest} cannot be read ({error})") from None
    expected: dict[str, Any] = cell.plain_settings()
    versions, planned = record.header["science"], cell.science
    names = [name for name in {**stated, **expected} if stated.get(name) != expected.get(name)]
    for name in {**versions, **planned}:
        names += [name] if versions.get(name, 1) != planned.get(name, 1) else []
    if names:
        listed = ", ".join(sorted(names))
        raise UserError(f"the settings of run {cell.digest} do not give this digest ({listed})")
