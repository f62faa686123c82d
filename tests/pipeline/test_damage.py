"""Plan files and metrics that were damaged, or that lie in another's place, are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cohort.cell.planned import PlannedFile, digest_of, read_plan, run_options, write_plan
from cohort.core.errors import UserError
from cohort.core.paths import RUN_OPTIONS, plan_file
from cohort.core.sealed_json import read_sealed, write_sealed
from cohort.pipeline.driver import freeze_plan
from cohort.pipeline.specs import claims_spec, spec_of
from cohort.pipeline.stages import Stages
from cohort.plan import Plan, all_studies, load
from cohort.results.claims.judge import write_judged
from cohort.results.collect import collect
from cohort.results.figures.draw import draw
from cohort.results.files import read_experiment, read_metrics
from cohort.results.series import count_runs, is_generated, read_metric
from cohort.results.tables.tabulate import tabulate
from cohort.training.cell import cell_of, read_cell
from cohort.training.job.train import train
from tests.commands.conftest import STUDY, finish
from tests.flips import flip_bits

FLIPS = 60
ITEMS = {
    "figures": {"fig1": {"experiment": "one", "kind": "curves", "metric": "test_accuracy"}},
    "claims": {
        "better": {
            "kind": "gain",
            "says": "FedAvg is better.",
            "where": "here",
            "experiment": "one",
            "metric": "test_accuracy",
            "along": "strategy",
            "pairs": [["fedavg", "loss"]],
        }
    },
}
Reader = Callable[[], Any]


@pytest.fixture
def plan(project: Path) -> Plan:
    """Six finished cells, and all plan files and metrics."""
    study = STUDY | ITEMS
    Path("config/studies/six.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    plan = load({"studies": ["six"]})
    for index, planned in enumerate(plan.cells.values()):
        finish(planned, accuracy=0.1 * index)
    freeze_plan(plan)
    collect_metrics(plan)
    return plan


WILDCARDS = SimpleNamespace(study="six", experiment="one")
METRICS = Path("results/full/metrics/six/one.parquet")


def experiment_plan_of(plan: Plan) -> Path:
    return Path(Stages(plan).collect_plan(WILDCARDS))


def collect_metrics(plan: Plan) -> None:
    collect(experiment_plan_of(plan), METRICS)


def readers(plan: Plan) -> dict[str, tuple[Path, Reader]]:
    """Each file with checksum, and what reads it."""
    cell, shards, data = (
        plan_file(next(iter(things))) for things in (plan.cells, plan.shards, plan.data)
    )
    experiment, runs = experiment_plan_of(plan), METRICS.with_suffix(".json")
    return {
        "a cell's plan": (cell, lambda: read_cell(cell)),
        "shards' plan": (shards, lambda: read_plan(shards)),
        "data's plan": (data, lambda: read_plan(data)),
        "options": (RUN_OPTIONS, lambda: [*map(run_options, ("train", "download", "request"))]),
        "an experiment's plan": (
            experiment,
            lambda: read_sealed(experiment, "x", "snakemake again"),
        ),
        "metrics": (METRICS, lambda: numbers(METRICS)),
        "runs": (runs, lambda: (read_experiment(runs), numbers(METRICS))),
    }


def numbers(file: Path) -> Any:
    table = read_metric(file, "test_accuracy")
    everything = read_metrics(file)
    return table.to_csv(), count_runs(everything), is_generated(everything)


def test_a_flipped_bit_is_never_believed(plan: Plan):
    for kind, (file, read) in readers(plan).items():
        assert flip_bits(file, read, FLIPS)["refused"] > 0.9 * FLIPS, kind


def damage(file: Path) -> None:
    """Flip a bit in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


STAGES: dict[str, Callable[[Plan], object]] = {
    "draw": lambda plan: draw(spec_of(plan, "six", "fig1"), METRICS, ["fig1.pdf"]),
    "tabulate": lambda plan: tabulate(spec_of(plan, "six", "tab1"), str(METRICS), ["tab1.csv"]),
    "judge": lambda plan: write_judged(claims_spec(plan, "six"), ["claims.csv"]),
}


@pytest.mark.parametrize("ending", [".parquet", ".json"])
def test_every_stage_refuses_damaged_metrics(ending: str, plan: Plan):
    damage(file := METRICS.with_suffix(ending))
    for stage in STAGES:
        with pytest.raises(UserError, match=f"^{file}: cannot be read as metrics .* snakemake"):
            stage(plan)


@pytest.mark.parametrize("scale", ["full", "reduced"])
def test_the_digest_of_every_cell_follows_from_its_plan_file(scale: str, project: Path):
    plan = load({"studies": all_studies(), "scale": scale})
    assert len(plan.cells) > 100
    for cell in list(plan.cells.values())[::5]:
        again = cell_of(PlannedFile(**json.loads(json.dumps(vars(cell.planned())))))
        assert again == cell
        assert digest_of(again.identity(), again.science) == cell.digest


CHANGES = [("lr", 0.85), ("seed", 1), ("selector", {"name": "loss"}), ("selector", 3), ("Lr", 0.85)]


@pytest.mark.parametrize(("key", "value"), CHANGES)
def test_a_job_works_the_digest_out_again(key: str, value: Any, plan: Plan):
    """Edited settings are refused even where the file's checksum was made anew."""
    planned = next(iter(plan.cells.values())).planned()
    file = plan_file(planned.digest)
    content = vars(planned) | {"settings": planned.settings | {key: value}}
    write_sealed(file, content)
    with pytest.raises(UserError, match=f"its settings are not those of {planned.digest}; start"):
        train(file, "record.h5")
    assert not Path("record.h5").exists()


def test_a_plan_file_in_anothers_place_is_refused(plan: Plan):
    first, second, *_ = map(plan_file, plan.cells)
    shutil.copy(first, second)
    with pytest.raises(UserError, match=f"{second}: is the plan of {first.stem}; start snakemake"):
        read_plan(second)
    write_plan(plan.cells[second.stem].planned())
    assert read_cell(second) == plan.cells[second.stem]
