"""A record under the name of another cell is that of no cell: nothing collects, counts or publishes it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.core.errors import UserError
from cohort.core.paths import digest_in, state_folder
from cohort.core.sealed_json import write_sealed
from cohort.pipeline.driver import remove_published_originals, restore_records
from cohort.pipeline.specs import experiment_plan
from cohort.plan import Plan
from cohort.results.collect import collect
from cohort.training.job.lease import FINISHED
from tests.commands.conftest import finish

SENTENCE = "under the name of another cell"


@pytest.fixture
def misplaced(plan: Plan) -> Path:
    """The place of the first of six finished cells, with the record of the second."""
    for planned in plan.cells.values():
        finish(planned)
    first, other, *_ = (Path(planned.path) for planned in plan.cells.values())
    shutil.copy(other, first)
    return first


def test_it_is_not_collected(plan: Plan, misplaced: Path):
    write_sealed("plan.json", experiment_plan(plan, "six", "one"))
    sentence = (
        rf"^{misplaced} is not a valid record \(it is that of {list(plan.cells)[1]}, {SENTENCE}\); "
        "delete it and run snakemake again"
    )
    with pytest.raises(UserError, match=sentence):
        collect("plan.json", "metrics.parquet")
    assert not Path("metrics.parquet").exists()


def test_commands_refuse_it(misplaced: Path, output_of: Callable[..., str]):
    digest = digest_in(misplaced)
    assert re.search(r"six.one +5 +1\b", output_of("status")), output_of("status")
    for command in (("show", str(misplaced)), ("show", digest), ("verify", digest)):
        assert SENTENCE in output_of(*command, fails=True), command


def test_it_is_not_published(plan: Plan, misplaced: Path):
    finished = state_folder(misplaced) / FINISHED
    finished.parent.mkdir()
    misplaced.rename(finished)
    restore_records(plan)
    assert not misplaced.exists()
    shutil.copy(finished, misplaced)
    remove_published_originals(plan.cells.values())
    assert finished.exists()
