"""`cohort status`: how many cells are done, running, failed and missing."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from cohort.cell.planned import Planned
from cohort.commands.planning import add_studies, load_plan
from cohort.core.layout import CLAIMS_TABLE
from cohort.pipeline.stages import output_files
from cohort.pipeline.status import STATES, failure, find_slurm_logs, status_of
from cohort.plan import Plan, Study
from cohort.tables.sizes import needs_no_runs

add_arguments = add_studies


def run(options: argparse.Namespace) -> None:
    """Print the status of the studies."""
    print_status(load_plan(options))


def print_status(plan: Plan) -> None:
    """Print a line for each experiment, figures drawn from records that are gone, and failures."""
    failed: dict[str, Planned] = {}
    slurm_logs, experiments = find_slurm_logs(), plan.rows(plan.listed)
    print_row("experiment", *STATES)
    for (study, experiment), rows in experiments.items():
        found = [status_of(plan.cells[row.digest], slurm_logs) for row in rows]
        counts = Counter(status.state for status in found)
        print_row(f"{study}.{experiment}", *(counts[state] for state in STATES))
        failed |= {
            status.planned.digest: status.planned for status in found if status.state == "failed"
        }
        missing = sum(not status.is_finished for status in found)
        drawn = _drawn_from(plan, plan.study(study), experiment)
        if drawn and missing:
            print(
                f"  {', '.join(drawn)} was drawn, but {missing} of its records are missing: "
                "run snakemake again"
            )
    for note in plan.notes:
        print(note)
    for planned in failed.values():
        print("\n" + failure(planned, slurm_logs))


def print_row(name: str, *values: object) -> None:
    """Print a line of a table: a name and right-aligned values."""
    print(f"{name:28}" + "".join(f"{value!s:>14}" for value in values))


def _drawn_from(plan: Plan, study: Study, experiment: str) -> list[str]:
    """The figures, tables and claims that show an experiment and whose files exist."""
    names = [
        name
        for name, spec in study.drawn().items()
        if spec["experiment"] == experiment and not needs_no_runs(spec)
    ]
    if experiment in study.claimed():
        names.append(CLAIMS_TABLE)
    return [name for name in names if _exist(output_files(plan, study, name))]


def _exist(files: Iterable[str]) -> bool:
    return all(Path(file).exists() for file in files)
