"""`cohort status --cost`: the estimated time and memory of missing cells, on CPUs and on a GPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from cohort.commands.screen import prose, table
from cohort.core.durations import duration_text
from cohort.pipeline.cell_states import CellStatus, find_slurm_logs, status_of
from cohort.plan import Plan, all_studies
from cohort.plan.cost import START_SECONDS, paces, round_seconds
from cohort.plan.gpu_times import GPUS, Gpu, find_gpu
from cohort.plan.requests import MAX_RUNTIME, jobs_needed, resource_request
from cohort.results.release.folder import release_folders, released_digests
from cohort.results.series import FULL
from cohort.training.cell import Cell

Seconds = Callable[[Cell], float]
TITLES = ("experiment", "cells", "missing", "one core", "one GPU", "taken/est.")


def print_cost(plan: Plan, gpu: str = "") -> None:
    """Print each experiment's missing cells, estimated time and how good estimates were.

    The last column is the time that finished cells took on CPUs, divided by their estimate.
    """
    costs = summarize(plan, gpu)
    rows = []
    for experiment in costs["experiments"]:
        share = experiment["measured_share"]
        hours = (experiment[key] for key in ("core_hours", "gpu_hours"))
        times = (duration_text(3600 * value) for value in hours)
        counts = experiment["cells"], experiment["missing"]
        name = f"{experiment['study']}.{experiment['experiment']}"
        rows.append((name, *counts, *times, "-" if share is None else f"{share:.2f}"))
    titles, *lines = table(TITLES, rows)
    print(titles)
    for line, experiment in zip(lines, costs["experiments"], strict=True):
        print(line)
        for job in experiment["jobs"]:
            print(_job_line(job))
    sentences = [_core_sentence(costs["core_hours"], costs["missing"]), _gpu_sentence(costs)]
    for text in [*costs["notes"], *sentences]:
        print(prose(text))


class Estimates:
    """Estimates cells' hours on a CPU core and a GPU, at the pace of finished cells of their
    model."""

    def __init__(self, plan: Plan, gpu: Gpu, cells: Iterable[CellStatus] = ()):
        self.plan, self.gpu = plan, gpu
        finished = [status for status in cells if status.seconds and status.device]
        on_gpu = [status for status in finished if gpu.name in status.device]
        on_core = [status for status in finished if gpu.is_cpu(status.device)]
        self.core_paces = self._paces(on_core, self.core_seconds)
        self.gpu_paces = self._paces(on_gpu, self.gpu_seconds)

    def core_seconds(self, cell: Cell) -> float:
        """Estimate the seconds of all rounds of a cell on one CPU core."""
        return round_seconds(cell, self.plan.dataset_info(cell))

    def gpu_seconds(self, cell: Cell) -> float:
        """Estimate the seconds of all rounds of a cell on the GPU."""
        return self.gpu.seconds(cell, self.plan.dataset_info(cell))

    def core_hours(self, cells: Iterable[Cell]) -> float:
        """Estimate the hours of one CPU core that cells take, start-up included."""
        return self._hours(cells, self.core_seconds, self.core_paces)

    def gpu_hours(self, cells: Iterable[Cell]) -> float:
        """Estimate the hours of the GPU that cells take one after another, start-up included."""
        return self._hours(cells, self.gpu_seconds, self.gpu_paces)

    @staticmethod
    def _paces(finished: Iterable[CellStatus], seconds: Seconds) -> dict[str, float]:
        return paces(
            (status.cell.settings.model, status.seconds, seconds(status.cell))
            for status in finished
        )

    @staticmethod
    def _hours(cells: Iterable[Cell], seconds: Seconds, pace: Mapping[str, float]) -> float:
        times = [pace.get(cell.settings.model, 1.0) * seconds(cell) for cell in cells]
        return (sum(times) + START_SECONDS * len(times)) / 3600


def summarize(plan: Plan, gpu_name: str = "") -> dict[str, Any]:
    """The cost of each experiment and of all missing cells, as numbers for JSON."""
    slurm_logs, statuses = find_slurm_logs(), {}
    for key, rows in plan.rows(plan.listed).items():
        statuses[key] = [status_of(plan.cells[row.digest], slurm_logs) for row in rows]
    every = {status.cell.digest: status for cells in statuses.values() for status in cells}
    estimates = Estimates(plan, find_gpu(gpu_name), every.values())
    missing = [status.cell for status in every.values() if not status.is_finished]
    models = sorted({cell.settings.model for cell in missing})
    return {
        "scale": plan.scale,
        "experiments": [
            {"study": study, "experiment": name} | _experiment_costs(estimates, cells)
            for (study, name), cells in statuses.items()
        ],
        "notes": [*plan.notes, *released_lines(plan, missing)],
        "missing": len(missing),
        "core_hours": estimates.core_hours(missing),
        "gpu": estimates.gpu.name,
        "gpu_hours": estimates.gpu_hours(missing),
        "measured_models": [model for model in models if model in estimates.gpu_paces],
        "assumed_models": [model for model in models if model not in estimates.gpu_paces],
    }


def total_lines(plan: Plan, missing: list[Cell]) -> Iterator[str]:
    """Yield lines on the core time that missing cells take, and on how many are released."""
    yield _core_sentence(Estimates(plan, find_gpu()).core_hours(missing), len(missing))
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


def _gpu_sentence(costs: Mapping[str, Any]) -> str:
    """A sentence on GPU hours, and whether rates were measured or assumed."""
    if not costs["missing"]:
        return ""
    measured = costs["measured_models"]
    rates = [f"measured there for {', '.join(measured)}"] if measured else []
    rates += [f"assumed in {GPUS}"] if costs["assumed_models"] else []
    time = duration_text(3600 * costs["gpu_hours"])
    return f"or {time} of one {costs['gpu']}, by rates {' and '.join(rates)}"


def _experiment_costs(estimates: Estimates, cells: list[CellStatus]) -> dict[str, Any]:
    missing = [status.cell for status in cells if not status.is_finished]
    share = paces(
        ("", status.seconds, estimates.core_seconds(status.cell))
        for status in cells
        if status.seconds and status.device and estimates.gpu.is_cpu(status.device)
    )
    return {
        "cells": len(cells),
        "missing": len(missing),
        "rounds": sum(cell.settings.rounds for cell in missing),
        "core_hours": estimates.core_hours(missing),
        "gpu_hours": estimates.gpu_hours(missing),
        "measured_share": share.get(""),
        "jobs": _jobs(estimates.plan, missing),
    }


def _jobs(plan: Plan, cells: Iterable[Cell]) -> list[dict[str, int]]:
    """Count the cluster jobs of these cells by the megabytes and minutes that they request, the
    jobs too short for their cell, and the most further jobs in which such a cell is resumed."""
    longest = plan.config.get("max_runtime", MAX_RUNTIME)
    jobs: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for cell in cells:
        info = plan.dataset_info(cell)
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
