"""`cohort`: what it says of a project, and what it draws from a part of it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from cohort.records.record import read
from tests.commands.conftest import output_of
from tests.conftest import ROOT
from tests.workflow import forked
from tests.workflow.conftest import Project


def cohort(project: Project, *arguments: str, fails: bool = False) -> str:
    """Run a command and return its output: in a process of its own only if it trains, as each start takes a second."""
    if arguments[0] != "run":
        with contextlib.chdir(project.root):
            return output_of(*arguments, fails=fails)
    environment = os.environ | {"PYTHONPATH": str(project.root / "workflow")}
    done = forked.run(["cohort", *arguments], project.root, environment)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def counts(project: Project, experiment: str) -> dict[str, int]:
    lines = [line.split() for line in cohort(project, "status").splitlines()]
    values = next(line for line in lines if line and line[0] == f"tiny.{experiment}")
    return {
        name: int(value)
        for name, value in zip(lines[0][1:], values[1:], strict=True)
        if value != "0"
    }


@pytest.mark.slow
def test_status_names_a_failed_cell_and_its_last_word(finished: Project):
    finished.narrow()
    record = next(path for path in finished.records() if "/J3/" in str(path))
    record.unlink()
    shutil.rmtree(finished.root / "results/shards")
    schemes, deal = "workflow/cohort/partition/schemes.py", "return np.array_split"
    finished.replace(schemes, deal, f"raise OSError('no space left')\n        {deal}")
    finished.snakemake(fails=True)
    # dealing failed, so its training never began
    assert counts(finished, "two") == {"done": 1, "missing": 1}
    finished.replace(schemes, "raise OSError('no space left')", "pass")
    broken = "raise OSError('no memory')\n        return Merged"
    finished.replace("workflow/cohort/training/servers.py", "return Merged", broken)
    assert "error: OSError('no memory')" in finished.snakemake(fails=True)
    assert counts(finished, "two") == {"done": 1, "failed": 1}
    text = cohort(finished, "status")
    assert f"failed: {record.relative_to(finished.root)}" in text
    assert "error: OSError('no memory')" in text and "more: less results/logs" in text
    partial = finished.root / "results/full/partial"
    assert (partial / "figures/tiny/fig2.pdf").exists()
    assert "n = 1 of 2 runs (1 missing)" in (partial / "report/tiny.html").read_text()
    finished.replace("workflow/cohort/training/servers.py", "raise OSError('no memory')", "pass")
    another = partial / "figures/other/fig1.pdf"
    another.parent.mkdir()
    another.touch()
    finished.snakemake()
    assert counts(finished, "two") == {"done": 2}
    assert [file for file in partial.rglob("*.[hpj]*") if file.stem != "index"] == [another]


def test_draw_shows_unfinished_cells_and_works_on_a_copied_tree(finished: Project, fresh: Project):
    shutil.copytree(finished.root / "results", fresh.root / "results")
    first, two = (path for path in fresh.records() if "/J3/" in str(path))
    first.unlink()
    two.unlink()
    cohort(fresh, "run", str(first.relative_to(fresh.root)), "--until", "2")
    own = (fresh.root / "results/full/figures").rglob("*")
    before = {path: path.read_bytes() for path in own if path.is_file()}
    page = fresh.root / cohort(fresh, "draw").strip()
    metrics = pd.read_parquet(fresh.root / "results/full/partial/metrics/tiny/two.parquet")
    assert sorted(metrics.drop_duplicates("digest")["status"]) == ["missing", "unfinished"]
    assert metrics.loc[metrics["metric"] == "test_accuracy", "round"].tolist() == [2]
    assert "1 unfinished, 1 missing" in page.read_text()
    assert before == {path: path.read_bytes() for path in before}
    assert counts(fresh, "two") == {"stopped": 1, "missing": 1}


def test_a_table_and_a_figure_are_drawn_alone(finished: Project):
    """As Snakemake drew them, without a page."""
    full, folder = finished.root / "results/full", "results/full/partial"
    drawn = cohort(finished, "draw", "tiny.tab1", "tiny.fig2").split()
    tables = [f"{folder}/tables/tiny/tab1.{suffix}" for suffix in ("csv", "md", "tex", "json")]
    endings = (".png", ".pdf", ".json", "-narrow.png")
    assert drawn == tables + [f"{folder}/figures/tiny/fig2{ending}" for ending in endings]
    for file in map(Path, drawn):
        whole = full / file.relative_to(folder)
        assert (finished.root / file).read_bytes() == whole.read_bytes(), file
    assert not (finished.root / folder / "report").exists()
    assert "no figure or table 'tab9'" in cohort(finished, "draw", "tiny.tab9", fails=True)


def test_make_figure_takes_what_it_draws_as_further_words():
    items = ["ucb.repeated", "fedentopt.tab1", "ucb.results"]
    done = subprocess.run(
        ["make", "-n", "figure", *items], cwd=ROOT, capture_output=True, text=True
    )
    assert (
        f"/cohort restore fedentopt ucb\n.venv/bin/cohort draw {' '.join(items)}\n" in done.stdout
    )
    done = subprocess.run(["make", "-n", "figure"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode and "make figure fedentopt.tab1" in done.stderr


@pytest.mark.slow
def test_a_diverged_cell_is_a_result(fresh: Project):
    fresh.narrow()
    study = fresh.study()
    study["experiments"]["two"]["settings"] = {"lr": 1e3, "weight_decay": 1e30}
    fresh.write(study)
    fresh.snakemake()
    assert counts(fresh, "two") == {"diverged": 2}
    record = read(next(path for path in fresh.records() if "/J3/" in str(path)))
    assert record.header["status"] == "diverged" and len(record.history.cohorts) < 4
    assert "diverged" in (fresh.root / "results/full/report/tiny.html").read_text()
    assert "Nothing to be done" in fresh.snakemake()


def test_show_and_a_file_that_is_no_record(finished: Project):
    record = finished.records()[0]
    shown = cohort(finished, "show", str(record))
    assert "test_accuracy" in shown
    assert re.search(r"^model +sent in MB: 0\.\d+ up, 0\.\d+ down, 0 between", shown, re.MULTILINE)
    assert cohort(finished, "show", record.stem.rpartition("-")[2][:9]) == shown
    assert "is the beginning of" in cohort(finished, "show", "k", fails=True)
    gone = cohort(finished, "show", "results/cells/gone.h5", fails=True)
    assert "there is no record of a cell 'results/cells/gone.h5'" in gone and "delete" not in gone
    record.write_bytes(record.read_bytes()[:500])
    damaged = cohort(finished, "show", str(record), fails=True)
    assert "cannot be read as a record" in damaged and "; delete it and run snakemake" in damaged
    for wrong in ("config/config.yaml", "results/cells", "results"):
        output = cohort(finished, "show", wrong, fails=True)
        assert "record" in output and "delete" not in output
    assert counts(finished, "one" if "/J2/" in str(record) else "two")["failed"] == 1


def test_output_that_nobody_reads_to_its_end_is_no_error(finished: Project):
    read, write = os.pipe()
    os.close(read)
    try:
        environment = os.environ | {"PYTHONPATH": str(finished.root / "workflow")}
        options = {"cwd": finished.root, "env": environment, "text": True, "stdout": write}
        command = [sys.executable, "-m", "cohort", "status"]
        done = subprocess.run(command, stderr=subprocess.PIPE, **options)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
