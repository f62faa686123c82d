"""`cohort export`: release the finished runs of studies as Parquet."""

import argparse
from pathlib import Path

from cohort.commands.prune import PlannedFiles
from cohort.commands.shared import add_studies, load_plan
from cohort.core.errors import UserError
from cohort.core.paths import RELEASED, record_file
from cohort.core.shipped import shipped
from cohort.core.text import counted
from cohort.plan import Plan, load
from cohort.records.record import read
from cohort.results.release import folder as releases


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, and --to."""
    add_studies(parser)
    text = f"output folder (default: {RELEASED})"
    parser.add_argument("--to", type=Path, default=Path(RELEASED), metavar="DIR", help=text)


def run(options: argparse.Namespace) -> None:
    """Write a release for each study and print a line on it: the runs that have records, and those
    that an earlier release in the folder holds and the study still has at some scale."""
    plan = load_plan(options)
    for study in plan.listed:
        print(export(plan, study, options.to / study))


def export(plan: Plan, study: str, folder: Path) -> str:
    """Write the release of a study's runs; return a line that says what it holds."""
    earlier = shipped(folder / releases.MANIFEST)  # else the one that ships with Cohort
    released = releases.read_release(earlier.parent) if earlier.exists() else []
    # The runs that the study has at some scale and number of seeds, asked for here or not.
    whole = plan.config | {"studies": study, "only": ""}
    planned = PlannedFiles(load(whole | {"scale": scale}) for scale in plan.scales)
    paths = (Path(plan.cells[digest].path) for digest in plan.digests(study))
    runs = {}
    for run in released:
        digest = run.header["digest"]
        if Path(record_file(run.header["settings"], digest)) in planned:
            runs[digest] = run
    finished = (read(path) for path in paths if path.exists())
    runs |= {run.header["digest"]: run for run in finished}
    if not runs:
        raise UserError(f"{study} has no finished run at scale {plan.scale}; train it first")
    releases.write_release(folder, study, runs.values())
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    before, total = {run.header["digest"] for run in released}, {*plan.digests(study), *runs}
    added, dropped = len(runs.keys() - before), len(before - runs.keys())
    line = f"{folder}: {len(runs)} of {counted(len(total), 'run')}, {added} of them new"
    lost = f"; {dropped} dropped that {study} no longer has" if dropped else ""
    return f"{line}, {size:.2f} MB{lost}"
