"""`cohort cost`: the estimated time and memory of what is missing."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable

from cohort.cell.planned import Planned
from cohort.commands.planning import add_studies, load_plan
from cohort.commands.status import print_row
from cohort.pipeline.status import CellStatus, find_slurm_logs, status_of
from cohort.plan import Plan
from cohort.plan.cost import START_SECONDS, round_seconds
from cohort.plan.requests import resource_request

add_arguments = add_studies


def run(options: argparse.Namespace) -> None:
    """Print the cost of the studies."""
    print_cost(load_plan(options))


def print_cost(plan: Plan) -> None:
    """Print for each experiment what is missing, its estimated time, and how good estimates were.

    The last column is the measured time of finished cells divided by their estimate.
    """
    slurm_logs, experiments = find_slurm_logs(), plan.rows(plan.listed)
    every_missing: dict[str, Planned] = {}
    print_row("experiment", "cells", "missing", "rounds", "core hours", "measured/est.")
    for (study, experiment), rows in experiments.items():
        found = [status_of(plan.cells[row.digest], slurm_logs) for row in rows]
        missing = [status.planned for status in found if not status.is_finished]
        every_missing |= {planned.digest: planned for planned in missing}
        print_row(
            f"{study}.{experiment}",
            len(found),
            len(missing),
            sum(planned.settings["rounds"] for planned in missing),
            rounded(_hours(plan, missing)),
            _measured_share(plan, [status for status in found if status.seconds]),
        )
        _print_jobs(plan, missing)
    for note in plan.notes:
        print(note)
    print(total(plan, list(every_missing.values())))


def total(plan: Plan, missing: list[Planned]) -> str:
    """The sentence about what the missing cells take."""
    return (
        f"{rounded(_hours(plan, missing))} core hours are estimated for the "
        f"{len(missing)} cells that are missing, with one CPU core for each"
    )


def rounded(value: float) -> str:
    """A value to three digits, as people write it: 0.279, 45.8, 8,530."""
    digits = f"{value:.3g}"
    return f"{float(digits):,.0f}" if value >= 100 else digits


def _print_jobs(plan: Plan, cells: Iterable[Planned]) -> None:
    """Print what the jobs of these cells request of a cluster."""
    jobs = Counter(
        resource_request(planned.settings, plan.datasets[planned.settings["dataset"]])
        for planned in cells
    )
    for (megabytes, minutes), count in sorted(jobs.items()):
        noun = "job" if count == 1 else "jobs"
        print(f"  {count} {noun} of {megabytes} MB and {minutes} minutes on a cluster")


def _measured_share(plan: Plan, finished: list[CellStatus]) -> str:
    if not finished:
        return "-"
    measured = sum(status.seconds for status in finished)
    return f"{measured / _seconds(plan, [status.planned for status in finished]):.2f}"


def _hours(plan: Plan, cells: list[Planned]) -> float:
    return (_seconds(plan, cells) + START_SECONDS * len(cells)) / 3600


def _seconds(plan: Plan, cells: Iterable[Planned]) -> float:
    """The estimated time of all rounds of these cells."""
    return sum(
        round_seconds(planned.settings, plan.datasets[planned.settings["dataset"]])
        for planned in cells
    )
