"""`cohort cost`: the estimated time and memory of what is missing, on CPUs and on a GPU."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from cohort.commands.planning import add_json, add_studies, load_plan
from cohort.commands.screen import core_time, print_json, prose, rounded, table
from cohort.pipeline.cell_states import CellStatus, find_slurm_logs, status_of
from cohort.plan import Plan
from cohort.plan.cost import START_SECONDS, round_seconds
from cohort.plan.gpu_times import GPUS, Gpu, find_gpu
from cohort.plan.requests import MAX_RUNTIME, jobs_needed, resource_request
from cohort.training.cell import Cell

TITLES = ("experiment", "cells", "missing", "rounds", "core h", "GPU h", "taken/est.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, --gpu and --json."""
    add_studies(parser)
    parser.add_argument(
        "--gpu", default="", metavar="NAME", help=f"a GPU of {GPUS} (default: the first one)"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print the cost of the studies."""
    plan = load_plan(options)
    if options.json:
        print_json(facts(plan, options.gpu))
    else:
        print_cost(plan, options.gpu)


def print_cost(plan: Plan, gpu: str = "") -> None:
    """Print for each experiment what is missing, its estimated time, and how good estimates were.

    The last column is the time that finished cells took on CPUs, divided by their estimate.
    """
    found = facts(plan, gpu)
    rows = []
    for one in found["experiments"]:
        share = one["measured_share"]
        hours = rounded(one["core_hours"]), rounded(one["gpu_hours"])
        measured = "-" if share is None else f"{share:.2f}"
        name = f"{one['study']}.{one['experiment']}"
        rows.append((name, one["cells"], one["missing"], one["rounds"], *hours, measured))
    titles, *lines = table(TITLES, rows)
    print(titles)
    for line, one in zip(lines, found["experiments"], strict=True):
        print(line)
        for job in one["jobs"]:
            print(_job_line(job))
    sentences = [_sentence(found["core_hours"], found["missing"]), _gpu_sentence(found)]
    for text in [*found["notes"], *sentences]:
        print(prose(text))


def facts(plan: Plan, gpu_name: str = "") -> dict[str, Any]:
    """The cost of each experiment and of all missing cells, as numbers."""
    slurm_logs, gpu, found = find_slurm_logs(), find_gpu(gpu_name), {}
    for key, rows in plan.rows(plan.listed).items():
        found[key] = [status_of(plan.cells[row.digest], slurm_logs) for row in rows]
    every = {status.cell.digest: status for cells in found.values() for status in cells}
    gpu.learn(
        (status.cell, plan.info(status.cell), status.seconds)
        for status in every.values()
        if status.is_finished and gpu.name in status.device
    )
    missing = [status.cell for status in every.values() if not status.is_finished]
    models = sorted({cell.settings.model for cell in missing})
    return {
        "scale": plan.scale,
        "experiments": [
            {"study": study, "experiment": name} | _experiment_facts(plan, gpu, cells)
            for (study, name), cells in found.items()
        ],
        "notes": plan.notes,
        "missing": len(missing),
        "core_hours": _hours(plan, missing),
        "gpu": gpu.name,
        "gpu_hours": _gpu_hours(plan, gpu, missing),
        "measured_models": [model for model in models if model in gpu.measured],
        "assumed_models": [model for model in models if model not in gpu.measured],
    }


def total(plan: Plan, missing: list[Cell]) -> str:
    """The sentence about what the missing cells take."""
    return _sentence(_hours(plan, missing), len(missing))


def _sentence(hours: float, missing: int) -> str:
    if not missing:
        return "no cell is missing"
    return f"{core_time(hours)} are estimated for the {missing} missing cells, on one CPU core each"


def _gpu_sentence(found: Mapping[str, Any]) -> str:
    """GPU hours, and what they rest on."""
    if not found["missing"]:
        return ""
    measured = found["measured_models"]
    rates = [f"measured there for {', '.join(measured)}"] if measured else []
    rates += [f"assumed in {GPUS}, a guess"] if found["assumed_models"] else []
    hours = rounded(found["gpu_hours"])
    return f"or {hours} hours of one {found['gpu']}, by rates {' and '.join(rates)}"


def _experiment_facts(plan: Plan, gpu: Gpu, cells: list[CellStatus]) -> dict[str, Any]:
    missing = [status.cell for status in cells if not status.is_finished]
    on_cpus = [status for status in cells if status.seconds and gpu.is_cpu(status.device)]
    return {
        "cells": len(cells),
        "missing": len(missing),
        "rounds": sum(cell.settings.rounds for cell in missing),
        "core_hours": _hours(plan, missing),
        "gpu_hours": _gpu_hours(plan, gpu, missing),
        "measured_share": _measured_share(plan, on_cpus),
        "jobs": _jobs(plan, missing),
    }


def _jobs(plan: Plan, cells: Iterable[Cell]) -> list[dict[str, int]]:
    """What the jobs of these cells request of a cluster, how many request the same, how many of
    them are too short for their cell, and in how many jobs such a cell is resumed at most."""
    longest = plan.config.get("max_runtime", MAX_RUNTIME)
    jobs: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for cell in cells:
        info = plan.info(cell)
        request = resource_request(cell, info, longest=longest)
        jobs[request].append(jobs_needed(cell, info, longest))
    return [
        {
            "count": len(needed),
            "megabytes": megabytes,
            "minutes": minutes,
            "too_short": len(needed) - needed.count(1),
            "resumed": max(needed) - 1,
        }
        for (megabytes, minutes), needed in sorted(jobs.items())
    ]


def _job_line(job: Mapping[str, int]) -> str:
    noun = "job" if job["count"] == 1 else "jobs"
    line = f"  {job['count']} {noun} of {job['megabytes']} MB and {job['minutes']} minutes"
    if not job["too_short"]:
        return f"{line} on a cluster"
    cells = "1 cell resumes" if job["too_short"] == 1 else f"{job['too_short']} cells resume"
    more = "1 more job" if job["resumed"] == 1 else f"up to {job['resumed']} more jobs"
    return f"{line}; {cells} in {more}"


def _measured_share(plan: Plan, finished: list[CellStatus]) -> float | None:
    """The time that finished cells took, divided by their estimate."""
    if not finished:
        return None
    measured = sum(status.seconds for status in finished)
    return measured / _seconds(plan, [status.cell for status in finished])


def _hours(plan: Plan, cells: list[Cell]) -> float:
    return (_seconds(plan, cells) + START_SECONDS * len(cells)) / 3600


def _seconds(plan: Plan, cells: Iterable[Cell]) -> float:
    """The estimated time of all rounds of these cells."""
    return sum(round_seconds(cell, plan.info(cell)) for cell in cells)


def _gpu_hours(plan: Plan, gpu: Gpu, cells: list[Cell]) -> float:
    seconds = sum(gpu.seconds(cell, plan.info(cell)) for cell in cells)
    return (seconds + START_SECONDS * len(cells)) / 3600
