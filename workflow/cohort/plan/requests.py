"""What a training job asks for: the cost of its cell and some more, of a cluster in few steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cohort.cell.planned import Planned
from cohort.plan.cost import START_SECONDS, memory_mb, round_seconds

TIME_FACTOR, MEMORY_FACTOR = 3, 1.5  # what a job asks for beyond the estimate
MOST_TIMES = 3  # what an attempt asks for beyond the first: one that was preempted often shall still fit into a node
SNAKEMAKE_MB = 350  # what Snakemake takes itself within a job on a cluster
MINUTES = (30, 60, 120, 240, 480, 1440)
MEGABYTES = (2000, 4000, 8000, 16000, 32000, 64000, 128000)

COST_KEYS = (
    *("dataset", "samples", "validation", "clients", "cohort", "model", "precision"),
    *("J", "batch", "rounds", "evaluate_every", "procedure"),
)
"""The settings that an estimate depends on, beside the selector and the server rule."""


def wanted(
    settings: Mapping[str, Any], facts: Mapping[str, Any], attempt: int = 1
) -> tuple[int, int]:
    """The megabytes and minutes that a job asks for, in steps, so that a cluster sees few kinds of jobs. A second attempt asks for more."""
    more = min(attempt, MOST_TIMES)
    minutes = TIME_FACTOR * (START_SECONDS + round_seconds(settings, facts)) / 60
    megabytes = MEMORY_FACTOR * memory_mb(settings, facts) + SNAKEMAKE_MB
    return _step(more * _step(megabytes, MEGABYTES), MEGABYTES), _step(
        more * _step(minutes, MINUTES), MINUTES
    )


def _step(amount: float, steps: tuple[int, ...]) -> int:
    """The first step that is enough, or the last one: who ran out of time goes on from his checkpoint."""
    return next((step for step in steps if step >= amount), steps[-1])


class Requests:
    """The requests of all cells, worked out once for each kind of cell."""

    def __init__(
        self, planned: Callable[[str], Planned], datasets: Mapping[str, Any] | None, local: bool
    ):
        """`datasets` is what the config says of the data sets. A job has none, and asks the plan file of the prepared data. Of this
        machine's memory, which all cells share, a cell takes the estimate."""
        self._planned, self._datasets, self._local = planned, datasets, local
        self._known: dict[tuple[Any, ...], tuple[int, int]] = {}

    def megabytes(self, wildcards: Any, attempt: int) -> int:
        """The memory of a training job: a resource of its rule."""
        return self._of(wildcards.digest, attempt)[0]

    def minutes(self, wildcards: Any, attempt: int) -> int:
        """Its time, likewise."""
        return self._of(wildcards.digest, attempt)[1]

    def _of(self, digest: str, attempt: int) -> tuple[int, int]:
        planned = self._planned(digest)
        settings = planned.settings
        key = (
            attempt,
            *(settings[name] for name in COST_KEYS),
            *map(str, settings["selector"].values()),
            settings["server"]["name"],
        )
        if key not in self._known:
            facts = self._facts(planned)
            megabytes, minutes = wanted(settings, facts, attempt)
            self._known[key] = (
                (round(memory_mb(settings, facts)) if self._local else megabytes),
                minutes,
            )
        return self._known[key]

    def _facts(self, planned: Planned) -> Mapping[str, Any]:
        if self._datasets is None:
            digest = planned.inputs["data"].rpartition("-")[2].removesuffix(".h5")
            return self._planned(digest).settings
        facts: Mapping[str, Any] = self._datasets[planned.settings["dataset"]]
        return facts
