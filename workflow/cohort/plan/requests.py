"""The memory and time that training jobs request: the estimated cost and a margin, in few steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cohort.data.dataset_info import DatasetInfo
from cohort.plan.cost import START_SECONDS, memory_mb, round_seconds
from cohort.training.cell import Cell

TIME_FACTOR, MEMORY_FACTOR = 3, 1.5  # what a job requests, times the estimate
MOST_TIMES = 3  # an attempt's request, times the first: a job preempted often must still fit a node
SNAKEMAKE_MB = 350  # what Snakemake itself takes within a job on a cluster
MINUTES = (30, 60, 120, 240, 480, 1440, 2880, 5760, 10080)
MAX_RUNTIME = 1440  # minutes, where the config does not say
MEGABYTES = (2000, 4000, 8000, 16000, 32000, 64000, 128000)


def resource_request(
    cell: Cell,
    info: DatasetInfo,
    attempt: int = 1,
    longest: int = MAX_RUNTIME,
) -> tuple[int, int]:
    """The megabytes and minutes that a cell's job requests at this attempt.

    They are rounded up to one of a few levels, so that a cluster sees few kinds of jobs. No job
    requests more than `longest` minutes: a cell that takes longer goes on in further jobs.
    """
    times = min(attempt, MOST_TIMES)
    minutes = TIME_FACTOR * (START_SECONDS + round_seconds(cell, info)) / 60
    megabytes = MEMORY_FACTOR * memory_mb(cell, info) + SNAKEMAKE_MB
    return (
        _smallest_step(times * _smallest_step(megabytes, MEGABYTES), MEGABYTES),
        min(_smallest_step(times * _smallest_step(minutes, MINUTES), MINUTES), longest),
    )


def jobs_needed(cell: Cell, info: DatasetInfo, longest: int = MAX_RUNTIME) -> int:
    """Estimate how many jobs of `longest` minutes a cell takes, one after another."""
    return math.ceil((START_SECONDS + round_seconds(cell, info)) / (60 * longest))


def _smallest_step(amount: float, steps: tuple[int, ...]) -> int:
    """The smallest of the ascending steps that is enough, or the last."""
    return next((step for step in steps if step >= amount), steps[-1])


class Requests:
    """The requests of all training jobs, computed once for cells that differ in their seed alone.

    `cell_of` finds a cell by its digest, and `info_of` the info of its data set. With `local`,
    cells share this machine's memory, and each requests its estimate alone. `longest` is the most
    minutes of a job.
    """

    def __init__(
        self,
        cell_of: Callable[[str], Cell],
        info_of: Callable[[Cell], DatasetInfo],
        local: bool,
        longest: int,
    ):
        self._cell_of, self._info_of, self._local = cell_of, info_of, local
        self._longest = longest
        self._requests: dict[tuple[Any, ...], tuple[int, int]] = {}

    def megabytes(self, wildcards: Any, attempt: int) -> int:
        """The memory that a training job requests, by its wildcard `digest`."""
        return self._request(wildcards.digest, attempt)[0]

    def minutes(self, wildcards: Any, attempt: int) -> int:
        """The time that a training job requests, by its wildcard `digest`."""
        return self._request(wildcards.digest, attempt)[1]

    def _request(self, digest: str, attempt: int) -> tuple[int, int]:
        cell = self._cell_of(digest)
        settings = (cell.settings.values() | {"seed": None}).values()
        key = (attempt, *settings, repr(cell.selector), repr(cell.server))
        if key not in self._requests:
            info = self._info_of(cell)
            megabytes, minutes = resource_request(cell, info, attempt, self._longest)
            if self._local:
                megabytes = round(memory_mb(cell, info))
            self._requests[key] = megabytes, minutes
        return self._requests[key]
