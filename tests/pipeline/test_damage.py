"""Plan files and metrics that were damaged, or that lie in another's place, are refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cohort.core.errors import UserError
from cohort.core.paths import RUN_OPTIONS, plan_file
from cohort.core.sealed_json import read_sealed, write_sealed
from cohort.pipeline.driver import freeze_plan
from cohort.pipeline.stages import Stages
from cohort.plan import Plan, all_studies, load
from cohort.results.collect import collect
from cohort.results.series import read_experiment, read_metric
from cohort.settings import PlannedFile, digest_of, read_plan, run_options, write_plan
from cohort.training.cell import cell_of, read_cell
from cohort.training.job.train import train
from tests.commands.conftest import STUDY, finish
from tests.flips import flip_bits

FLIPS = 100
METRICS = Path("results/full/metrics/six/one.parquet")


@pytest.fixture
def plan(project: Path) -> Plan:
    """Six finished cells, and all plan files and metrics."""
    Path("config/studies/six.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    plan = load({"studies": ["six"]})
    for index, planned in enumerate(plan.cells.values()):
        finish(planned, accuracy=0.1 * index)
    freeze_plan(plan)
    collect(experiment_plan_of(plan), METRICS)
    return plan


def experiment_plan_of(plan: Plan) -> Path:
    return Path(Stages(plan).collect_plan(SimpleNamespace(study="six", experiment="one")))


def read_all_metrics() -> tuple[str, dict[str, Any]]:
    return read_metric(METRICS, "test_accuracy").to_csv(), read_experiment(
        METRICS.with_suffix(".json")
    )


READERS: dict[str, Callable[[Plan], tuple[Path, Callable[[Path], Any]]]] = {
    "a cell's plan": lambda plan: (plan_file(next(iter(plan.cells))), read_cell),
    "shards' plan": lambda plan: (plan_file(next(iter(plan.shards))), read_plan),
    "options": lambda plan: (RUN_OPTIONS, lambda _: [*map(run_options, ("train", "download"))]),
    "an experiment's plan": lambda plan: (
        experiment_plan_of(plan),
        lambda path: read_sealed(path, "x", "snakemake again"),
    ),
    "metrics": lambda plan: (METRICS, lambda _: read_all_metrics()),
    "runs": lambda plan: (METRICS.with_suffix(".json"), lambda _: read_all_metrics()),
}


@pytest.mark.parametrize("kind", READERS)
def test_a_flipped_bit_is_never_believed(kind: str, plan: Plan):
    file, read = READERS[kind](plan)
    assert flip_bits(file, lambda: read(file), FLIPS)["refused"] > 0.9 * FLIPS


def test_metrics_that_are_missing_or_without_a_checksum_are_one_sentence(plan: Plan):
    METRICS.unlink()
    with pytest.raises(UserError, match=r"one\.parquet is missing; run snakemake again"):
        read_metric(METRICS, "test_accuracy")
    METRICS.with_suffix(".json").write_text(json.dumps({"study": "six", "cells": []}))
    with pytest.raises(UserError, match=r"no checksum\); delete it and run snakemake again"):
        read_metric(METRICS, "test_accuracy")


def test_the_digest_of_every_cell_follows_from_its_plan_file(project: Path):
    plan = load({"studies": all_studies(), "scale": "reduced"})
    assert len(plan.cells) > 100
    for cell in list(plan.cells.values())[::5]:
        again = cell_of(PlannedFile(**json.loads(json.dumps(vars(cell.planned())))))
        assert again == cell
        assert digest_of(again.identity(), again.science) == cell.digest


@pytest.mark.parametrize(
    ("key", "value"), [("lr", 0.85), ("seed", 1), ("selector", {"name": "nobody"}), ("Lr", 0.85)]
)
def test_a_job_works_the_digest_out_again(key: str, value: Any, plan: Plan):
    """Edited settings are refused even where the file's checksum was made anew."""
    planned = next(iter(plan.cells.values())).planned()
    file = plan_file(planned.digest)
    content = vars(planned) | {"settings": planned.settings | {key: value}}
    write_sealed(file, content)
    with pytest.raises(UserError, match=f"its settings are not those of {planned.digest}; dele"):
        train(file, "record.h5")
    assert not Path("record.h5").exists()


def test_a_plan_file_in_anothers_place_is_refused(plan: Plan):
    first, second, *_ = map(plan_file, plan.cells)
    shutil.copy(first, second)
    with pytest.raises(UserError, match=f"{second} is the plan of {first.stem}; delete it"):
        read_plan(second)
    write_plan(plan.cells[second.stem].planned())
    assert read_cell(second) == plan.cells[second.stem]
