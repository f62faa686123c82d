"""Many flipped bits in the files that the pipeline writes for itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.pipeline.specs import spec_of
from cohort.plan import Plan
from cohort.results.tables.tabulate import tabulate
from tests.flips import flip_bits
from tests.pipeline.test_damage import KINDS, METRICS, plan, readers  # noqa: F401 (fixture)
from tests.stress.conftest import Tell

FLIPS = 2_000


@pytest.fixture(scope="session", autouse=True)
def slurm() -> None:
    """Replace the cluster fixture of the other stress tests, which this one does not need."""


def table_of(plan: Plan) -> Callable[[], str]:  # noqa: F811
    """Tabulates the metrics of the six cells."""

    def read() -> str:
        tabulate(spec_of(plan, "six", "tab1"), str(METRICS), ["tab1.csv"])
        return Path("tab1.csv").read_text()

    return read


@pytest.mark.parametrize("kind", [*KINDS, "metrics behind a table", "runs behind a table"])
def test_flipped_bits(kind: str, plan: Plan, tell: Tell):  # noqa: F811
    table = table_of(plan)
    files = readers(plan) | {
        "metrics behind a table": (METRICS, table),
        "runs behind a table": (METRICS.with_suffix(".json"), table),
    }
    outcomes = flip_bits(*files[kind], FLIPS, seed=time.time_ns())
    tell(
        f"{FLIPS:,} x one flipped bit in {kind} ({files[kind][0].stat().st_size:,} bytes)",
        f"{outcomes['refused']:,} refused in one sentence, {outcomes['the same']:,} read as the same "
        "values, none believed, no other exception",
    )
