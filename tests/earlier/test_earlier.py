"""Records, checkpoints and plan files of an earlier version are read and continued.

`tree/` holds what the revision 993ec9b wrote, and `expected.json` the histories of its stopped cells as
it finished them itself; `make_tree.py` made both. Only the command line, Snakemake and
`cohort.records.record.read` are used, so the tests hold whatever the package looks like inside.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.project import copied
from cohort.records.record import Record, read
from tests.workflow.conftest import Project

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "expected.json").read_text())
FINISHED = {"done": 7, "diverged": 1}
TRAINERS = {"probe": "chained", "scaffold": "chained", "private": "batched"}  # else serial
ROUNDING = 1e-3  # of losses, between processors
ONE_SAMPLE = 1 / 165  # of the test samples
RUN_EACH = """
import runpy, sys
import cohort.core.process
cohort.core.process.leave = lambda: None
for digest in sys.argv[1:]:  # in one process, which imports PyTorch only once
    sys.argv = ["cohort", "run", digest]
    try:
        runpy.run_module("cohort", run_name="__main__", alter_sys=True)
    except SystemExit as error:
        print(error)
"""


def continued(folder: Path) -> Project:
    """The earlier version's files in a project of this version."""
    root = copied(folder)
    shutil.rmtree(root / "config/studies")
    shutil.copytree(HERE / "tree", root, dirs_exist_ok=True)
    project = Project(root)
    project.replace("config/config.yaml", "studies: [demo]", "studies: [earlier]")
    project.replace("config/config.yaml", "device: auto", "device: cpu")
    (root / "config/scales.yaml").write_text("full: {}\n")  # six rounds cannot be made fewer
    return project


@pytest.fixture
def tree(tmp_path: Path) -> Project:
    return continued(tmp_path / "project")


def cohort(project: Project, *arguments: str) -> str:
    return python(project, "-m", "cohort", *arguments)


def python(project: Project, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=project.root,
        env=os.environ | {"PYTHONPATH": str(project.root / "workflow")},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def statuses(project: Project, *studies: str) -> list[dict[str, int]]:
    """How many cells of each experiment are done, diverged, ..., as `cohort status` prints it."""
    lines = cohort(project, "status", *studies).splitlines()
    header, *rows = (line.split()[1:] for line in lines[: 1 + len(studies)])
    counts = (dict(zip(header, map(int, row), strict=True)) for row in rows)
    return [{state: number for state, number in row.items() if number} for row in counts]


def contents(project: Project, folder: str) -> dict[Path, bytes]:
    files = (path for path in (project.root / folder).rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files}


def plan_files(project: Project) -> dict[str, dict]:
    """What each plan file says of a cell, shards or data, by digest."""
    files = (project.root / "results/plan").glob("k*.json")
    return {path.stem: json.loads(path.read_text()) for path in files}


def check_same_plan(now: dict, before: dict) -> None:
    """A later version may know more settings and components; the earlier ones are unchanged."""
    for key in ("path", "digest", "inputs"):
        assert now[key] == before[key]
    assert now["science"] | before["science"] == now["science"]
    for key, value in before["settings"].items():  # a dict holds the parameters of a component
        known = now["settings"][key]
        assert (known | value if isinstance(value, dict) else value) == known


def test_nothing_moves_and_no_finished_cell_is_trained(tree: Project):
    jobs = tree.planned("earlier", "stopped_tab1")
    assert jobs["train"] == len(EXPECTED)
    assert [jobs[rule] for rule in ("collect", "draw", "tabulate")] == [2, 1, 2]
    record = tree.records()[0]
    shutil.copy2(record, record.with_name("seed0-k000000000000.h5"))
    listed = re.findall(r"results/\S+", cohort(tree, "prune"))  # what no study names
    assert listed == [str(record.relative_to(tree.root).with_name("seed0-k000000000000.h5"))]


def test_figures_tables_and_page_are_made_from_the_records(tree: Project):
    cells, plans = contents(tree, "results/cells"), plan_files(tree)
    tree.snakemake("--cores", "2")
    assert not (tree.root / "results/logs/train").exists()
    assert contents(tree, "results/cells") == cells
    for digest, plan in plan_files(tree).items():
        if digest in plans:  # else data or shards, which only missing records need
            check_same_plan(plan, plans[digest])
    for path in ("figures/earlier/fig1.svg", "figures/earlier/fig1.png", "report/earlier.html"):
        assert (tree.root / "results/full" / path).stat().st_size > 1000, path
    records = [record for record in map(read, tree.records()) if record.header["status"] == "done"]
    with open(tree.root / "results/full/tables/earlier/tab1.csv") as file:
        rows = [row for row in csv.DictReader(file) if row["diverged"] == "0"]
    assert len(records) == len(rows) == FINISHED["done"]
    tabulated = sorted(float(row["mean"]) for row in rows)
    assert tabulated == pytest.approx(sorted(map(final_accuracy, records)))


def final_accuracy(record: Record) -> float:
    return record.history.last("test_accuracy")


def test_commands_read_the_records_and_checkpoints(tree: Project):
    assert statuses(tree, "earlier", "stopped") == [FINISHED, {"stopped": len(EXPECTED)}]
    (scaffold,) = (path for path in tree.records() if "/scaffold/" in str(path))
    shown = cohort(tree, "show", str(scaffold.relative_to(tree.root)))
    assert "strategy=scaffold" in shown and '"trainer": "chained"' in shown
    (line,) = (line for line in shown.splitlines() if line.startswith("test_accuracy "))
    assert line.split()[2] == f"{final_accuracy(read(scaffold)):.6g}"
    cohort(tree, "draw", "stopped")
    drawn = pd.read_parquet(tree.root / "results/full/partial/metrics/stopped/main.parquet")
    assert drawn.digest.nunique() == len(EXPECTED)
    for cell in EXPECTED.values():
        rounds = drawn[(drawn.digest == cell["digest"]) & (drawn.metric == "train_loss")]
        expected = [value for _, value in cell["history"]["metrics/train_loss"][: cell["stopped"]]]
        assert rounds.value.tolist() == pytest.approx(expected, abs=1e-5)


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project in which `cohort run` has resumed each stopped cell, and what it printed."""
    project = continued(tmp_path_factory.mktemp("resumed") / "project")
    digests = [cell["digest"] for cell in EXPECTED.values()]
    return project.root, python(project, "-c", RUN_EACH, *digests)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_stopped_cell_is_resumed(name: str, resumed: tuple[Path, str]):
    expected, (root, printed) = EXPECTED[name], resumed
    assert f"resume at round {expected['stopped']}: {expected['path']}\n" in printed, printed
    record = read(root / expected["path"])
    check_provenance(record, TRAINERS.get(name, "serial"), expected["stopped"])
    check_history(record, expected["history"])


def check_provenance(record: Record, trainer: str, stopped: int) -> None:
    """Both sessions are named, and the trainer is still the checkpoint's, or the reference if that
    one is gone."""
    provenance = record.header["provenance"]
    assert [session["from_round"] for session in provenance["sessions"]] == [0, stopped]
    assert provenance["sessions"][0]["trainer"] == trainer
    assert provenance["trainer"] == ("serial" if trainer == "chained" else trainer)


def check_history(record: Record, expected: dict[str, list]) -> None:
    """Whom the selector chose and what it cost exactly, losses and accuracies but for rounding."""
    history = record.history
    assert record.header["status"] == "done"
    assert [cohort.tolist() for cohort in history.cohorts] == expected["cohorts"]
    assert [pool.tolist() for pool in history.pools] == expected.get("probes/pools", [])
    for name, values in expected.items():
        group, _, key = name.partition("/")
        if group not in ("metrics", "cost"):
            continue
        found = dict(getattr(history, group)[key])
        tolerance = ROUNDING if group == "metrics" else 0
        if key.endswith("accuracy"):
            tolerance = ONE_SAMPLE + 1e-5
        assert found == pytest.approx(dict(values), rel=0, abs=tolerance), name


def test_a_finished_state_is_published_not_trained(tree: Project):
    """A job of the earlier version outlived its driver; its plan file is all that a new one needs."""
    record = next(path for path in tree.records() if "/probe/" in str(path))
    content = record.read_bytes()
    state = record.with_suffix(".state")
    state.mkdir()
    record.rename(state / "finished.h5")
    said = cohort(tree, "run", f"results/plan/{record.stem.partition('-')[2]}.json")
    assert "at round" not in said
    assert record.read_bytes() == content
