"""What Snakemake's command line asks for, and the previews that become out of date."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from cohort.core.errors import UserError
from cohort.core.paths import Layout
from cohort.pipeline.driver import remove_previews
from cohort.pipeline.stages import Stages
from cohort.pipeline.targets import requested_items, targets
from cohort.plan import load


@pytest.mark.parametrize(
    ("targets", "asked"),
    [
        ([], [("demo", ""), ("ucb", "")]),
        (["all"], [("demo", ""), ("ucb", "")]),
        (["aml_written", "aml"], [("aml_written", ""), ("aml", "")]),
        (["demo_fig1", "demo_claims"], [("demo", "fig1"), ("demo", "claims")]),
        (["results/full/figures/demo/fig1.png"], [("demo", "fig1")]),
        (["results/full/report/aml.html", "aml"], [("aml", "")]),
        (["results/full/report/index.html"], [("demo", ""), ("ucb", "")]),
        (["results/full/metrics/demo/main.parquet", "demo_fig99", "train"], []),
    ],
)
def test_what_was_asked_for(targets: list[str], asked: list[tuple[str, str]]):
    assert requested_items(load({"studies": ["demo", "ucb"]}), targets) == asked


def test_what_a_workflow_with_other_names_asked_for():
    plan = load({"studies": ["demo"]})
    targets = ["cohort_ucb", "cohort_demo_fig1", "demo"]
    assert requested_items(plan, targets, "cohort_{}".format) == [("ucb", ""), ("demo", "fig1")]
    assert requested_items(plan, [], "cohort_{}".format) == [("demo", "")]


def previews(layout: Layout, *studies: str) -> dict[str, list[Path]]:
    """A page, a figure, a table and metrics of each study."""
    results = {}
    for study in studies:
        files = [*layout.page(study), layout.metrics(study, "main")]
        files += [*layout.figure(study, "fig1"), *layout.table(study, "tab1")]
        results[study] = [Path(file) for file in files]
        for file in results[study]:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        card = {"name": study, "title": study, "source": {}, "scale": "full", "runs": {}}
        card |= {"phrase": "", "spent": 0.0, "to_go": 0.0, "verdicts": [], "date": ""}
        card |= {"commits": [], "generated": False, "command": f"snakemake {study}"}
        card["runs"] = dict.fromkeys(("planned", "done", "diverged", "unfinished", "missing"), 1)
        Path(layout.page(study)[1]).write_text(json.dumps(card))
    return results


def test_previews_of_what_is_finished_go_and_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    layout = Layout("full", partial=True)
    files = previews(layout, "demo", "aml")
    remove_previews("full", [("aml", "fig1")])
    assert {file.exists() for file in files["demo"]} == {True}
    assert [file for file in files["aml"] if not file.exists()] == [
        Path(file) for file in layout.figure("aml", "fig1")
    ]
    remove_previews("full", [("demo", "")])
    assert not any(file.exists() for file in files["demo"])
    assert all(Path(file).exists() for file in layout.page("aml"))
    index = Path(layout.index()).read_text()
    assert "aml" in index and "demo" not in index
    remove_previews("full", [("aml", "")])
    assert not Path(layout.index()).exists()


def test_a_study_with_the_name_of_another_target(project: Path, monkeypatch: pytest.MonkeyPatch):
    Path("config/studies/demo_fig1.yaml").write_text("title: taken")
    with pytest.raises(
        UserError, match=r"the target demo_fig1 is that of .*'fig1' of .*/demo.yaml and of "
    ):
        list(targets(load({"studies": "demo"})))


@pytest.mark.parametrize("rule", ["train_inputs", "sources"])
def test_a_file_that_no_listed_study_has(rule: str):
    with pytest.raises(SystemExit, match=r"error: no listed study has .* k0123456789ab at scale"):
        getattr(Stages(load()), rule)(SimpleNamespace(digest="k0123456789ab"))
