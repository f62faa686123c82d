"""`cohort export`: release the finished runs of studies as Parquet."""

from __future__ import annotations

import argparse
from pathlib import Path

from cohort.commands.planning import add_studies, load_plan
from cohort.core.errors import UserError
from cohort.core.paths import RELEASED, record_file
from cohort.core.shipped import shipped
from cohort.core.text import counted
from cohort.plan import Plan, load
from cohort.plan.any_seed import FilesOfAnySeed
from cohort.records.record import Record, read
from cohort.results.release.folder import MANIFEST, read_release, write_release


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, and --to."""
    add_studies(parser)
    parser.add_argument(
        "--to",
        type=Path,
        default=Path(RELEASED),
        metavar="DIR",
        help=f"output folder (default: {RELEASED})",
    )


def run(options: argparse.Namespace) -> None:
    """Write a release for each study and print a line on it: the runs that have records, and those
    that an earlier release in the folder holds and the study still has at some scale."""
    plan = load_plan(options)
    for study in plan.listed:
        print(export(plan, study, options.to / study))


def export(plan: Plan, study: str, folder: Path) -> str:
    """Write the release of a study's runs; return a line that says what it holds."""
    paths = (Path(plan.cells[digest].path) for digest in plan.digests(study))
    records = [read(path) for path in paths if path.exists()]
    released = _released_runs(folder)
    # The runs that the study has at some scale and number of seeds, asked for here or not.
    overrides = {"studies": study, "only": ""}
    planned = FilesOfAnySeed(load(plan.config | overrides | {"scale": key}) for key in plan.scales)
    runs = {
        digest: run
        for digest, run in released.items()
        if Path(record_file(run.header["settings"], digest)) in planned
    }
    runs |= {record.header["digest"]: record for record in records}
    if not runs:
        raise UserError(f"{study} has no finished run at scale {plan.scale}; train it first")
    write_release(folder, study, runs.values())
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    total = len({*plan.digests(study), *runs})
    added, dropped = len(runs.keys() - released.keys()), len(released.keys() - runs.keys())
    line = f"{folder}: {len(runs)} of {counted(total, 'run')}, {added} of them new, {size:.2f} MB"
    return line + (f"; {dropped} dropped that {study} no longer has" if dropped else "")


def _released_runs(folder: Path) -> dict[str, Record]:
    """The runs of the release in a folder, or of the one that ships with Cohort in its place, by
    digest; none if there is no release."""
    folder = shipped(folder / MANIFEST).parent
    if not (folder / MANIFEST).exists():
        return {}
    return {record.header["digest"]: record for record in read_release(folder)}
