"""`cohort export`: release the finished runs of studies as Parquet."""

from __future__ import annotations

import argparse
from pathlib import Path

from cohort.commands.planning import add_studies, load_plan
from cohort.core.errors import UserError
from cohort.core.paths import RELEASED
from cohort.records.record import Record, read
from cohort.results.release.folder import MANIFEST, read_release, write_release


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, and --to."""
    add_studies(parser)
    parser.add_argument(
        "--to", type=Path, metavar="DIR", default=Path(RELEASED), help=f"default: {RELEASED}"
    )


def run(options: argparse.Namespace) -> None:
    """Write a release for each study: the runs that have records, and those that an earlier release
    in the same folder holds and the study still plans."""
    plan = load_plan(options)
    for study in plan.listed:
        folder = options.to / study
        digests = set(plan.digests(study))
        released = _released(folder)
        runs = {digest: run for digest, run in released.items() if digest in digests}
        for path in (Path(plan.cells[digest].path) for digest in digests):
            if path.exists():
                record = read(path)
                runs.setdefault(record.header["digest"], record)
        if not runs:
            raise UserError(f"{study} has no finished run at scale {plan.scale}; train it first")
        write_release(folder, study, runs.values())
        size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
        added, dropped = len(runs.keys() - released.keys()), len(released.keys() - runs.keys())
        print(
            f"{folder}: {len(runs)} of {len(digests)} runs, {added} of them new, {size:.2f} MB"
            + (f"; {dropped} dropped that {study} no longer has" if dropped else "")
        )


def _released(folder: Path) -> dict[str, Record]:
    """The runs of the release in a folder; none if there is none."""
    if not (folder / MANIFEST).exists():
        return {}
    return {record.header["digest"]: record for record in read_release(folder)}
