"""What makes a cell train again, and what does not: each sentence of the design as a test, with `snakemake` as a user types it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.workflow.conftest import CELLS, Project, jobs, wait_for


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(file): (file.stat().st_mtime_ns, file.read_bytes())
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_new_seed_trains_only_its_cells(finished: Project):
    study = finished.study()
    study["experiments"]["one"]["axes"]["seed"].append(1)
    finished.write(study)
    assert CELLS["one"] == 4
    expected = {"collect": 1, "draw": 1, "tabulate": 1, "report": 1, "index": 1}
    # iid of seed 1 was dealt for experiment two
    assert finished.planned() == expected | {"train": 4, "deal": 1}


def test_deleted_record_is_missed_by_a_figures_own_target(finished: Project):
    next(path for path in finished.records() if "/classes-2/" in str(path)).unlink()
    assert finished.planned("tiny_fig1") == {"train": 1, "collect": 1, "draw": 1, "tiny_fig1": 1}
    assert finished.planned("tiny_fig2") == {}


def test_a_record_to_be_trained_again_needs_its_shards(finished: Project):
    """Snakemake deletes it first: without shards its job would fail, and the record be lost."""
    shutil.rmtree(finished.root / "results/shards")
    assert finished.planned() == {}
    record = str(finished.records()[0].relative_to(finished.root))
    for options in (["-R", record], ["tiny_fig1", "-F"], ["-R", "train"], ["-f", record]):
        planned = finished.planned(*options)
        assert planned["train"] > 0 and planned["deal"] > 0, options


def test_a_new_source_of_a_raw_file_hides_no_missing_cell(finished: Project):
    """Snakemake asks nothing of what depends on a job that is to run, if its input is ancient."""
    finished.records()[0].unlink()
    planned = finished.planned()
    source = "source: package:sklearn/datasets/data/digits.csv.gz"
    finished.replace("config/datasets.yaml", source, f"{source}\n      mirrors: [https://a.org/b]")
    assert planned["train"] == 1 and finished.planned() == planned


def test_other_rerun_triggers_train_no_finished_cell(finished: Project):
    shutil.rmtree(finished.root / "results/shards")
    options = ["--rerun-triggers", "mtime", "params", "input", "code"]
    before = snapshot(finished.root / "results/cells")
    output = finished.snakemake(*options, fails=True)
    assert "would train finished cells again" in output
    assert snapshot(finished.root / "results/cells") == before


def test_until_announces_no_page(finished: Project):
    preview = finished.root / "results/full/partial/figures/tiny"
    preview.mkdir(parents=True)
    output = finished.snakemake("--until", "prepare", "-R", "prepare")
    assert "report/tiny.html" not in output and preview.exists()


def test_deleted_metrics_are_made_again(finished: Project):
    """Also together with a record below them, and for a target that draws something else from them."""
    (finished.root / "results/full/metrics/tiny/one.parquet").unlink()
    again = {"collect": 1, "draw": 1, "tabulate": 1, "report": 1, "index": 1}
    assert finished.planned() == again
    next(path for path in finished.records() if "/classes-2/" in str(path)).unlink()
    assert finished.planned() == again | {"train": 1}
    expected = {"train": 1, "collect": 1, "tabulate": 1, "tiny_tab1": 1}
    assert finished.planned("tiny_tab1") == expected
    assert finished.planned("tiny_fig2") == {}


def test_comments_in_all_code_train_nothing(finished: Project):
    for file in (finished.root / "workflow").rglob("*.py"):
        file.write_text(file.read_text() + "\n# a comment\n")
    actual = finished.planned()
    assert not {"train", "deal", "prepare", "download"} & set(actual), actual
    assert actual["draw"] == 2


def test_a_changed_value_of_a_paper_draws_what_shows_it_and_trains_nothing(finished: Project):
    values = finished.root / "resources/paper_values/tiny.csv"
    head = "item,source,doubtful,dataset,model,partition,J,strategy,other,metric,at,round,value,sd"
    values.write_text(
        head + "\n" + "TableI,printed,,digits,,iid,J2,fedavg,,test_accuracy,last,,0.5,\n"
    )
    study = finished.study()
    study["tables"]["tab1"] |= {"paper": "TableI"}
    finished.write(study)
    assert jobs(finished.snakemake()) == {"tabulate": 1, "report": 1, "index": 1}
    table = finished.root / "results/full/tables/tiny/tab1.md"
    assert "<br>paper 50.00 " in table.read_text() and "Everywhere: 1 run." in table.read_text()
    assert finished.planned() == {}
    values.write_text(values.read_text().replace("0.5,", "0.625,"))
    assert jobs(finished.snakemake()) == {"tabulate": 1, "report": 1, "index": 1}
    assert "<br>paper 62.50 " in table.read_text()


@pytest.mark.parametrize(
    ("file", "old", "new", "planned"),
    [
        ("results/figures/theme.py", "from __future__", "# x\nfrom __future__", {"draw": 2}),
        ("results/report/templates/page.html.j2", "<header>", "<header >", {}),
    ],
)
def test_changed_code_makes_what_it_makes_again(
    file: str, old: str, new: str, planned: dict[str, int], finished: Project
):
    finished.replace(f"workflow/cohort/{file}", old, new)
    assert finished.planned() == planned | {"report": 1, "index": 1}


def test_unrelated_config_changes_nothing(finished: Project):
    finished.replace("config/config.yaml", "checkpoint_seconds: 60", "checkpoint_seconds: 7")
    finished.replace("config/config.yaml", "jobs_per_gpu: 1", "jobs_per_gpu: 3")
    finished.replace("config/strategies.yaml", "title: Highest loss", "title: The highest loss")
    (finished.root / "empty").mkdir()
    assert finished.planned("--config", "data_mirror=empty") == {}


@pytest.mark.slow
def test_changed_setting_trains_its_experiment_and_changed_back_only_redraws(finished: Project):
    study = finished.study()
    study["experiments"]["two"]["settings"] = {"lr": 0.1}
    finished.write(study)
    assert jobs(finished.snakemake())["train"] == CELLS["two"]
    del study["experiments"]["two"]["settings"]
    finished.write(study)
    assert finished.planned() == {"collect": 1, "draw": 1, "report": 1, "index": 1}


@pytest.mark.slow
def test_new_strategy_trains_only_its_cells_even_without_shards(finished: Project):
    for file in (finished.root / "results/shards").rglob("*.h5"):
        file.unlink()
    for file in (finished.root / "resources/data").glob("*.h5"):
        file.unlink()
    study = finished.study()
    study["experiments"]["one"]["axes"]["strategy"].append("loss")
    finished.write(study)
    records = {path: path.stat().st_mtime_ns for path in finished.records()}
    ran = jobs(finished.snakemake())
    assert (ran["train"], ran["deal"], ran["prepare"]) == (2, 2, 1)
    assert {path: path.stat().st_mtime_ns for path in records} == records


@pytest.mark.slow
def test_smoke_after_full_leaves_full_figures_alone(finished: Project):
    before, study = snapshot(finished.root / "results/full"), finished.study()
    finished.narrow()
    output = finished.snakemake("--config", "scale=smoke")
    assert "tiny.two: 1 of 2 cells at this scale" in output
    assert snapshot(finished.root / "results/full") == before
    assert (finished.root / "results/smoke/figures/tiny/fig2.png").exists()
    finished.write(study)
    assert finished.planned() == {}


@pytest.mark.slow
@pytest.mark.parametrize("where", ["here", "cluster"])
def test_study_broken_while_its_jobs_wait(fresh: Project, where: str):
    """Each job of a cluster reads the Snakefile anew: what was planned is finished all the same."""
    fresh.narrow()
    submit = fresh.root / "submit.sh"
    submit.write_text('#!/bin/bash\nnohup bash "$1" > /dev/null 2>&1 &\necho $!\n')
    submit.chmod(0o755)
    cluster = (
        *("--executor", "cluster-generic", "--cluster-generic-submit-cmd", "./submit.sh"),
        *("--jobs", "1", "--seconds-between-status-checks", "1"),
    )
    process = fresh.start(*(cluster if where == "cluster" else ["--cores", "1"]))
    wait_for(lambda: list((fresh.root / "results/cells").rglob("*.state")))
    (fresh.root / "config/studies/tiny.yaml").write_text("title: [broken")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert len(fresh.records()) == CELLS["two"]
    assert (fresh.root / "results/full/figures/tiny/fig2.png").exists()
