"""`cohort status --cost`: the estimated time of missing cells, and the jobs that a cluster sees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cohort.commands.screen import prose, table
from cohort.core.text import counted, duration_text
from cohort.pipeline.cell_states import (
    CellStatus,
    core_hours,
    find_slurm_logs,
    hours_left,
    status_of,
)
from cohort.plan import Plan, all_studies
from cohort.plan.cost import MAX_RUNTIME, jobs_needed, resource_request
from cohort.results.release.folder import release_folders, released_digests
from cohort.results.series import FULL
from cohort.training.cell import Cell


def print_cost(plan: Plan) -> None:
    """Print each experiment's missing cells, their estimated time and the jobs that they request,
    and the time of all at the pace of the cells that have finished."""
    costs = summarize(plan)
    rows = [
        (
            f"{experiment['study']}.{experiment['experiment']}",
            experiment["cells"],
            experiment["missing"],
            duration_text(3600 * experiment["core_hours"]),
        )
        for experiment in costs["experiments"]
    ]
    titles, *lines = table(("experiment", "cells", "missing", "one core"), rows)
    print(titles)
    for line, experiment in zip(lines, costs["experiments"], strict=True):
        print(line)
        for job in experiment["jobs"]:
            print(_job_line(job))
    sentences = [_core_sentence(costs["core_hours"], costs["missing"])]
    sentences += [
        f"or {duration_text(3600 * hours)} at the pace of the cells done on {device}"
        for device, hours in costs["hours_left"].items()
        if device and hours
    ]
    for text in [*costs["notes"], *sentences]:
        print(prose(text))


def summarize(plan: Plan) -> dict[str, Any]:
    """The cost of each experiment and of all missing cells, as numbers for JSON."""
    slurm_logs, experiments = find_slurm_logs(), []
    statuses: dict[str, CellStatus] = {}
    for (study, name), rows in plan.rows(plan.listed).items():
        own = {row.digest: status_of(plan.cells[row.digest], slurm_logs) for row in rows}
        statuses |= own
        missing = [status.cell for status in own.values() if not status.is_finished]
        cost = {
            "cells": len(own),
            "missing": len(missing),
            "rounds": sum(cell.settings.rounds for cell in missing),
            "core_hours": core_hours(plan, missing),
            "jobs": _jobs(plan, missing),
        }
        experiments.append({"study": study, "experiment": name} | cost)
    missing = [status.cell for status in statuses.values() if not status.is_finished]
    return {
        "scale": plan.scale,
        "experiments": experiments,
        "notes": [*plan.notes, *released_lines(plan, missing)],
        "missing": len(missing),
        "core_hours": core_hours(plan, missing),
        "hours_left": hours_left(plan, statuses.values()),
    }


def total_lines(plan: Plan, missing: list[Cell]) -> Iterator[str]:
    """Yield lines on the core time that missing cells take, and on how many are released."""
    yield _core_sentence(core_hours(plan, missing), len(missing))
    yield from released_lines(plan, missing)


def released_lines(plan: Plan, missing: Iterable[Cell]) -> Iterator[str]:
    """Yield a line on how many missing cells are released here, if any, and how to take them."""
    rest = every = {cell.digest for cell in missing}
    folders = release_folders(all_studies()) if every else {}
    released = {study: every & released_digests(folder) for study, folder in folders.items()}
    studies = []
    for study in sorted(released, key=lambda name: -len(released[name])):
        if released[study] & rest:
            studies.append(study)
            rest = rest - released[study]
    if count := len(every) - len(rest):
        scale = "" if plan.scale == FULL else f" --scale {plan.scale}"
        yield (
            f"{count:,} of {len(every):,} missing cells {'is' if count == 1 else 'are'} released: "
            f"cohort restore {' '.join(studies)}{scale}"
        )


def _core_sentence(hours: float, missing: int) -> str:
    if not missing:
        return "no cell is missing"
    cells = "1 cell is" if missing == 1 else f"{missing} cells are"
    return f"{cells} missing: about {duration_text(3600 * hours)} of one CPU core"


def _jobs(plan: Plan, cells: Iterable[Cell]) -> list[dict[str, int]]:
    """Count the cluster jobs of these cells by the megabytes and minutes that they request, and the
    most further jobs in which one of these cells is resumed."""
    longest = plan.config.get("max_runtime", MAX_RUNTIME)
    jobs: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for cell in cells:
        info = plan.dataset_info(cell)
        request = resource_request(cell, info, longest=longest)
        jobs[request].append(jobs_needed(cell, info, longest))
    return [
        {"count": len(needed), "megabytes": mb, "minutes": minutes, "resumed": max(needed) - 1}
        for (mb, minutes), needed in sorted(jobs.items())
    ]


def _job_line(job: Mapping[str, int]) -> str:
    jobs = f"  {counted(job['count'], 'job')} of {job['megabytes']} MB and {job['minutes']} minutes"
    resumed = f", resumed in up to {counted(job['resumed'], 'more job')}" if job["resumed"] else ""
    return f"{jobs} on a cluster{resumed}"
