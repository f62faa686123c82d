"""What a cell's digest is made of, and a committed list of digests that must never change."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.plan import Plan
from cohort.plan.yaml_files import read_yaml
from cohort.settings import digest_of, plan_file, write_plan
from cohort.training.cell import read_cell

PlanOf = Callable[..., Plan]
COMMITTED = Path(__file__).parent / "digests.csv"


def digest(plan_of: PlanOf, **settings: Any) -> str:
    (result,) = plan_of({"settings": settings}).cells
    return result


def test_committed_digests_still_match(plan_of: PlanOf):
    """A new setting at its neutral value, a new component, a new key in a config file: none may change a digest of old.

    Where this fails every finished cell of every user would be trained again. If that is meant, bump the `science` version of what has
    changed instead of changing how digests are made.
    """
    with open(COMMITTED, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 10
    for row in rows:
        axes = {key: [row[key]] for key in ("partition", "J", "strategy")}
        Path("settings.yaml").write_text(row["settings"])
        plan = plan_of({"axes": axes, "settings": read_yaml("settings.yaml") or {}})
        (cell,) = plan.cells.values()
        (shards,) = plan.shards.values()
        (data,) = plan.data.values()
        digests = {"cell": cell.digest, "shards": shards.digest, "data": data.digest}
        assert row | digests == row


def test_a_number_is_one_number_however_written(plan_of: PlanOf):
    assert digest(plan_of, lr=1, rounds=100.0) == digest(plan_of, lr=1.0, rounds=100)


@pytest.mark.parametrize("change", [{"momentum": 0.5}, {"lr": 0.06}, {"batch": 17}, {"evaluate_every": 2}, {"precision": "float64"},
                                    {"samples": 0.5}, {"reserve": 61}, {"model": "small-cnn"}, {"augmentation": "flip"}])  # fmt: skip
def test_every_setting_counts(plan_of: PlanOf, change: dict[str, Any]):
    assert digest(plan_of) != digest(plan_of, **change)


def test_science_above_one_counts():
    settings = {"lr": 0.1}
    plain = digest_of(settings, {})
    assert digest_of(settings, {"selector:random": 1, "model:new": 1}) == plain
    assert digest_of(settings, {"selector:random": 2}) != plain


def test_how_a_file_comes_does_not_count_but_its_content_does(plan_of: PlanOf, project: Path):
    """Neither its URL, nor what it is packed in, nor a mirror."""
    settings, file = {"dataset": "mnist"}, project / "config/datasets.yaml"
    before, text = digest(plan_of, **settings), file.read_text()
    (mirrored,) = plan_of({"settings": settings}, config={"data_mirror": str(project)}).cells
    assert mirrored == before
    source = "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz\n      md5: f68b3c2dcbeaaa9fbdd348bbdeb94873\n"
    packed = f"http://elsewhere.org/x.tar.gz\n      md5: {'a' * 32}\n      member: mnist/train\n"
    assert source in text
    file.write_text(text.replace(source, packed))
    assert digest(plan_of, **settings) == before
    file.write_text(text.replace("sha256: ba891046e6", "sha256: ca891046e6"))
    assert digest(plan_of, **settings) != before


def test_seeds_share_their_shards_between_strategies(plan_of: PlanOf):
    plan = plan_of(
        {"axes": {"strategy": ["fedavg", "loss", "fedentopt"], "J": ["J4", "J8"], "seed": [0, 1]}}
    )
    assert len(plan.cells) == 12 and len(plan.shards) == 2 and len(plan.data) == 1


def test_a_plan_file_reads_back(plan_of: PlanOf):
    (cell,) = plan_of({}).cells.values()
    write_plan(cell.planned())
    assert read_cell(plan_file(cell.digest)) == cell
    plan_file(cell.digest).write_text("{")
    with pytest.raises(UserError, match="run snakemake again"):
        read_cell(plan_file(cell.digest))
