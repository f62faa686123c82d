"""Cells whose data lie behind a login are skipped with one line, unless the data, a way to them, or their records are here."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cohort.pipeline.stages import page_spec
from cohort.plan import Plan

PlanOf = Callable[..., Plan]
PACS, DIGITS = (
    f"https://drive.google.com/uc?id={name}"
    for name in ("1m4X4fROCCXMO0lRLrr6Zz9Vb3974NWhE", "15V7EsHfCcfbKgsDmzQKj_DfXt_XYp_P7")
)
SETTINGS = {"model": "small-cnn", "clients": 10, "cohort": 3, "rounds": 5, "batch": 16, "lr": 0.05}
MIXED = {"axes": {"dataset": ["cifar10", "pacs"], "seed": [0, 1, 2]}}
NOTE = f"study.main: 3 of 6 cells skipped: pacs is behind a login ({PACS}); set data_mirror"


def datasets_of(plan: Plan) -> list[str]:
    return [row.labels["dataset"] for row in plan.study("study").experiments["main"].rows]


def test_cells_without_data_are_skipped_with_one_line(plan_of: PlanOf):
    plan = plan_of(MIXED, settings=SETTINGS)
    assert datasets_of(plan) == ["cifar10"] * 3
    assert plan.notes == [NOTE]
    assert page_spec(plan, "study")["notes"] == [NOTE]
    in_panels = {"axes": MIXED["axes"] | {"panel": ["a", "b"]}}  # a run in two panels is one cell
    assert plan_of(in_panels, settings=SETTINGS).notes == [NOTE]


def test_a_mirror_the_raw_file_and_the_prepared_data_bring_them_back(plan_of: PlanOf):
    every = plan_of(MIXED, settings=SETTINGS).data.values()
    (data,) = (item for item in every if item.settings["dataset"] == "pacs")
    Path("mirror/deep").mkdir(parents=True)
    mirrored = {"data_mirror": "mirror"}
    assert plan_of(MIXED, settings=SETTINGS, config=mirrored).notes == [NOTE]
    for path in ("mirror/deep/pacs.zip", "resources/raw/pacs/pacs.zip", data.path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
        config = mirrored if "mirror" in path else {}
        assert plan_of(MIXED, settings=SETTINGS, config=config).notes == []
        Path(path).unlink()
    assert plan_of(MIXED, settings=SETTINGS).notes == [NOTE]


def test_only_the_files_behind_the_login_must_be_here(plan_of: PlanOf):
    """The others of the data set are downloaded."""
    file = Path("config/datasets.yaml")
    content = yaml.safe_load(file.read_text())
    content["mnist"]["files"]["train-images-idx3-ubyte"] = {"login": "https://example.org"}
    file.write_text(yaml.safe_dump(content))
    block, mirrored = {"axes": {"dataset": ["mnist"]}}, {"data_mirror": "mirror"}
    assert "login (https://example.org)" in plan_of(block, settings=SETTINGS).notes[0]
    Path("mirror").mkdir()
    Path("mirror/train-images-idx3-ubyte").touch()
    assert plan_of(block, settings=SETTINGS, config=mirrored).notes == []


def test_a_record_that_exists_stays_and_its_digest_is_the_same_with_data(plan_of: PlanOf):
    Path("mirror").mkdir()
    Path("mirror/pacs.zip").touch()
    full_plan = plan_of(MIXED, settings=SETTINGS, config={"data_mirror": "mirror"})
    row = full_plan.study("study").experiments["main"].rows[3]  # of seed 1
    assert row.labels["dataset"] == "pacs"
    record = Path(full_plan.cells[row.digest].path)
    record.parent.mkdir(parents=True)
    record.touch()
    plan = plan_of(MIXED, settings=SETTINGS)
    rows = plan.study("study").experiments["main"].rows
    assert [item.labels["seed"] for item in rows] == [0, 1, 1, 2]
    assert rows[2].digest == row.digest
    assert plan.notes == [NOTE.replace("3 of 6", "2 of 6")]


def test_what_would_show_nothing_is_left_out(plan_of: PlanOf):
    drawn = {"experiment": "main", "kind": "curves", "metric": "test_accuracy"}
    table = {"experiment": "main", "metric": "test_accuracy", "rows": ["dataset", "strategy"]}
    study = {"settings": SETTINGS, "figures": {"fig1": drawn}, "tables": {"tab1": table}}
    for only in ("", "seed=0"):
        axes = {"dataset": ["pacs"], "seed": [0, 1]}
        plan = plan_of({"axes": axes}, config={"only": only}, **study)
        note = NOTE.replace("3 of 6", "2 of 2") + " (fig1, tab1 cannot be drawn)"
        assert plan.notes == [note] and plan.digests("study") == []
        assert plan.study("study").experiments == {} == plan.study("study").drawn_items()


def test_without_tenseal_cells_are_skipped_with_one_line(
    plan_of: PlanOf, monkeypatch: pytest.MonkeyPatch
):
    """Cells of masked labels, which TenSEAL encrypts."""
    axes = {"partition": ["covering-5"], "J": ["J1e"], "seed": [0, 1]}
    changes = {"clients": 5, "cohort": 5, "reserve": 0, "procedure": "masked-labels", "rounds": 1}
    block = {"axes": axes, "settings": changes}
    assert plan_of(block).notes == []
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "tenseal" else find(name)
    )
    plan = plan_of(block)
    assert plan.digests("study") == []
    assert plan.notes == [
        "study.main: 2 of 2 cells skipped: procedure 'masked-labels' needs the package tenseal, "
        "which is not installed; pip install tenseal"
    ]
