"""`cohort export`: release the finished runs of studies as Parquet, or write them for others."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cohort.commands.planning import add_studies, load_plan
from cohort.core.errors import UserError
from cohort.core.lazy import lazy
from cohort.core.paths import RELEASED, RESULTS, record_file
from cohort.core.shipped import shipped
from cohort.core.text import counted
from cohort.plan import Plan, load
from cohort.plan.any_seed import FilesOfAnySeed
from cohort.records.record import Record, read
from cohort.results.release.folder import MANIFEST, read_release, recover, write_release
from cohort.results.release.tables import tables_of

if TYPE_CHECKING:
    from cohort.results.release import exports, frames
else:
    exports, frames = lazy("cohort.results.release.exports"), lazy("cohort.results.release.frames")

PARQUET = "parquet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, --to and --format."""
    add_studies(parser)
    parser.add_argument(
        "--to",
        type=Path,
        metavar="DIR",
        help=f"output folder (default: {RELEASED}; for other formats than {PARQUET}: "
        f"{RESULTS}/FORMAT)",
    )
    parser.add_argument(
        "--format",
        choices=(PARQUET, "csv", "tensorboard"),
        default=PARQUET,
        help="a release as Parquet (the default), tables as CSV, or curves for TensorBoard",
    )


def run(options: argparse.Namespace) -> None:
    """Write a release for each study and print a line on it: the runs that have records, and those
    that an earlier release in the folder holds and the study still has at some scale. Other formats
    hold the former."""
    plan = load_plan(options)
    for study in plan.listed:
        if options.format == PARQUET:
            print(_write_release(plan, study, (options.to or Path(RELEASED)) / study))
        else:
            folder = (options.to or Path(RESULTS, options.format)) / study
            print(_write_exports(plan, study, options.format, folder))


def _write_exports(plan: Plan, study: str, form: str, folder: Path) -> str:
    """Write the runs of a study that have records in this format; return a line that says what."""
    records = _read_records(plan, study)
    if not records:
        raise _no_runs_error(plan, study)
    data = frames.RunFrames.of(tables_of(records.values()))
    paths = exports.FORMATS[form](data, folder)
    where = ", ".join(path.name for path in paths)
    return f"{folder}: {counted(len(records), 'run')}" + (f" in {where}" if form == "csv" else "")


def _write_release(plan: Plan, study: str, folder: Path) -> str:
    """Write the release of a study's runs; return a line that says what it holds."""
    released = _read_released(folder)
    runs = _read_records(plan, study) | _still_planned(plan, study, released)
    if not runs:
        raise _no_runs_error(plan, study)
    write_release(folder, study, runs.values())
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    total = len({*plan.digests(study), *runs})
    added, dropped = len(runs.keys() - released.keys()), len(released.keys() - runs.keys())
    return (
        f"{folder}: {len(runs)} of {counted(total, 'run')}, {added} of them new, {size:.2f} MB"
        + (f"; {dropped} dropped that {study} no longer has" if dropped else "")
    )


def _still_planned(plan: Plan, study: str, runs: Mapping[str, Record]) -> dict[str, Record]:
    """The runs that a study has at some scale and some number of seeds, whether or not they were
    asked for or can be trained here."""
    overrides = {"studies": study, "only": ""}
    planned = FilesOfAnySeed(load(plan.config | overrides | {"scale": key}) for key in plan.scales)
    return {
        digest: run
        for digest, run in runs.items()
        if Path(record_file(run.header["settings"], digest)) in planned
    }


def _read_records(plan: Plan, study: str) -> dict[str, Record]:
    """Read the records that the cells of a study have, by digest."""
    paths = (Path(plan.cells[digest].path) for digest in plan.digests(study))
    records = (read(path) for path in paths if path.exists())
    return {record.header["digest"]: record for record in records}


def _no_runs_error(plan: Plan, study: str) -> UserError:
    return UserError(f"{study} has no finished run at scale {plan.scale}; train it first")


def _read_released(folder: Path) -> dict[str, Record]:
    """Read the runs of the release in a folder, or of the one that ships with Cohort in its place,
    by digest; none if there is no release."""
    recover(folder)
    folder = shipped(folder / MANIFEST).parent
    if not (folder / MANIFEST).exists():
        return {}
    return {record.header["digest"]: record for record in read_release(folder)}
