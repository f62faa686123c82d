"""`cohort`: what it says of a project, and what it draws from a part of it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest
import yaml

from cohort.commands.cli import main
from cohort.data.shards import read as read_shards
from cohort.records.record import read
from tests.workflow import forked
from tests.workflow.conftest import Project


def cohort(project: Project, *arguments: str, fails: bool = False) -> str:
    """Run a command and return its output: in a process of its own only if it trains, as each start
    takes a second."""
    if arguments[0] != "run":
        return said(project, *arguments, fails=fails)
    environment = os.environ | {"PYTHONPATH": str(project.root / "workflow")}
    done = forked.run(["cohort", *arguments], project.root, environment)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def said(project: Project, *arguments: str, fails: bool) -> str:
    output = io.StringIO()
    with contextlib.chdir(project.root), contextlib.redirect_stdout(output):
        try:
            main(arguments)
        except SystemExit as ended:
            assert fails, ended
            return output.getvalue() + str(ended)
    assert not fails
    return output.getvalue()


def counts(project: Project, experiment: str) -> dict[str, int]:
    lines = [line.split() for line in cohort(project, "status").splitlines()]
    values = next(line for line in lines if line and line[0] == f"tiny.{experiment}")
    return {
        name: int(value)
        for name, value in zip(lines[0][1:], values[1:], strict=True)
        if value != "0"
    }


@pytest.mark.slow
def test_status_of_a_finished_project_and_of_a_hole_in_it(finished: Project):
    assert counts(finished, "one") == {"done": 4}
    record = next(path for path in finished.records() if "/J3/" in str(path))
    record.unlink()
    assert counts(finished, "two") == {"done": 1, "missing": 1}
    assert "fig2 was drawn, but 1 of its records are missing: run snakemake again" in cohort(
        finished, "status"
    )


@pytest.mark.slow
def test_status_names_a_failed_cell_and_its_last_word(finished: Project):
    finished.narrow()
    record = next(path for path in finished.records() if "/J3/" in str(path))
    record.unlink()
    shutil.rmtree(finished.root / "results/shards")
    finished.replace(
        "workflow/cohort/partition/schemes.py",
        "return np.array_split",
        "raise OSError('no space left')\n        return np.array_split",
    )
    finished.snakemake(fails=True)
    assert counts(finished, "two") == {
        "done": 1,
        "missing": 1,
    }  # dealing failed, so its training never began
    finished.replace(
        "workflow/cohort/partition/schemes.py", "raise OSError('no space left')", "pass"
    )
    finished.replace(
        "workflow/cohort/training/servers.py",
        "return Merged",
        "raise OSError('no memory')\n        return Merged",
    )
    output = finished.snakemake(fails=True)
    assert "error: OSError('no memory')" in output
    assert counts(finished, "two") == {"done": 1, "failed": 1}
    text = cohort(finished, "status")
    assert (
        f"failed: {record.relative_to(finished.root)}" in text
        and "error: OSError('no memory')" in text
        and "more: less results/logs" in text
    )
    page = finished.root / "results/full/partial/report/tiny.html"
    assert "n = 1 of 2 runs (1 missing)" in page.read_text()
    finished.replace("workflow/cohort/training/servers.py", "raise OSError('no memory')", "pass")
    finished.snakemake()
    assert counts(finished, "two") == {"done": 2}
    assert not page.exists()


def test_cost_before_anything_ran(fresh: Project):
    line = next(line for line in cohort(fresh, "cost").splitlines() if line.startswith("tiny.one"))
    assert re.fullmatch(r"tiny\.one +4 +4 +\d+ s +\d+ s +-", line), line


def test_draw_shows_unfinished_cells_and_works_on_a_copied_tree(finished: Project, fresh: Project):
    shutil.copytree(finished.root / "results", fresh.root / "results")
    first, two = (path for path in fresh.records() if "/J3/" in str(path))
    first.unlink()
    two.unlink()
    cohort(fresh, "run", str(first.relative_to(fresh.root)), "--until", "2")
    before = {
        path: path.read_bytes()
        for path in (fresh.root / "results/full/figures").rglob("*")
        if path.is_file()
    }
    page = fresh.root / cohort(fresh, "draw").strip()
    metrics = pd.read_parquet(fresh.root / "results/full/partial/metrics/tiny/two.parquet")
    assert metrics.drop_duplicates("digest")["status"].tolist() == ["unfinished", "missing"]
    assert metrics.loc[metrics["metric"] == "test_accuracy", "round"].tolist() == [2]
    assert "1 unfinished, 1 missing" in page.read_text()
    assert before == {path: path.read_bytes() for path in before}, (
        "the workflow's own figures must not change"
    )
    assert counts(fresh, "two") == {"stopped": 1, "missing": 1}


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


def test_prune_lists_and_deletes_what_no_study_names(finished: Project):
    """Also a study that is not listed names cells, and other seeds may be asked for again."""
    studies = finished.root / "config/studies"
    (studies / "other.yaml").write_text((studies / "tiny.yaml").read_text())
    study = finished.study()
    study["experiments"]["two"]["settings"] = {"lr": 0.3}
    finished.write(study)
    assert "in 0 records" in cohort(finished, "prune")
    (studies / "other.yaml").unlink()
    listed = cohort(finished, "prune")
    assert "in 2 records, shards and checkpoints could be deleted" in listed
    assert len(finished.records()) == 6
    cohort(finished, "prune", "--delete")
    assert len(finished.records()) == 4
    assert "in 0 records" in cohort(finished, "prune")


def test_show_and_a_file_that_is_no_record(finished: Project):
    record = finished.records()[0]
    shown = cohort(finished, "show", str(record))
    assert "test_accuracy" in shown
    assert re.search(r"^model +sent in MB: 0\.\d+ up, 0\.\d+ down, 0 between", shown, re.MULTILINE)
    digest = record.stem.rpartition("-")[2]
    assert cohort(finished, "show", digest[:9]) == shown
    assert "there is no record of a cell 'kxyz'" in cohort(finished, "show", "kxyz", fails=True)
    assert "is the beginning of" in cohort(finished, "show", "k", fails=True)
    gone = cohort(finished, "show", "results/cells/gone.h5", fails=True)
    assert "there is no record results/cells/gone.h5" in gone and "delete" not in gone
    record.write_bytes(record.read_bytes()[:500])
    damaged = cohort(finished, "show", str(record), fails=True)
    assert "is not a valid record" in damaged and "; delete it and run snakemake again" in damaged
    for wrong in ("config/config.yaml", "results/cells", "results"):
        output = cohort(finished, "show", wrong, fails=True)
        assert "record" in output and "delete" not in output
    assert counts(finished, "one" if "/J2/" in str(record) else "two")["failed"] == 1


def test_shards_shows_what_the_workflow_dealt(finished: Project):
    (stored,) = finished.root.glob("results/shards/digits/classes-2/clients10-seed0-*.h5")
    counts = read_shards(stored).label_counts
    text = cohort(finished, "shards", "classes-2", "--dataset", "digits", "--clients", "10")
    rows = [line.split() for line in text.splitlines()[-10:]]
    assert [row[3:] for row in rows] == [[str(count or ".") for count in line] for line in counts]
    assert [int(row[1]) for row in rows] == counts.sum(axis=1).tolist()
    words = ("shards", "classes-2", "--dataset", "digits", "--clients", "10", "--json")
    described = json.loads(cohort(finished, *words))
    assert described["label_counts"] == counts.tolist()
    assert (described["overlap"], described["held_by_nobody"]) == (None, 0)
    assert (
        "classes per client         2       2       2" in text and "overlapping clients: 0" in text
    )


def test_shards_of_data_that_is_not_there_yet(fresh: Project):
    """1,437 samples for 5 clients, 287 or 288 each; a fifth of what one holds in the end is 72 more, of which four lend 18 each."""
    text = cohort(
        fresh, "shards", "iid-overlap0.2x1", "--dataset", "digits", "--clients", "5", "--seed", "1"
    )
    sizes = sorted(int(line.split()[1]) for line in text.splitlines()[-5:])
    assert set(sizes[:4]) <= {287, 288} and sizes[4] in (287 + 72, 288 + 72)
    share = f"{72 / sizes[4]:.1%}"
    assert f"overlapping clients: 1, borrowing {share} to {share} of their samples" in text
    assert not (fresh.root / "results/shards").exists()
    many = cohort(
        fresh, "shards", "iid", "--dataset", "digits", "--clients", "100", "--samples", "0.5"
    )
    assert (
        "printed for up to 30 clients" in many
        and "\nsamples per client         7       7       8\n" in many
    )


@pytest.mark.parametrize(
    ("partition", "options", "message"),
    [
        ("iid", ["--clients", "0"], "cohort shards: clients: 0 is less than the minimum of 1"),
        ("iid", ["--samples", "2"], "cohort shards: samples: 2.0 is greater than the maximum of 1"),
        ("iid", ["--dataset", "nope"], "cohort shards: dataset is 'nope', which is not known"),
        (
            "iid",
            ["--holdout", "1"],
            "cohort shards: holdout: 1.0 is greater than the maximum of 0.9",
        ),
        ("idd", [], "partition 'idd' is not known; did you mean 'iid'?"),
        (
            "roles-2",
            [],
            "partition 'roles-2' of digits is impossible: it deals samples by their groups (domains, roles), and this data set",
        ),
        ("covering-1", [], "5 clients that hold 1 each cannot hold all 10 classes"),
        ("classes-2", [], "5 clients leave some of the 10 classes unheld"),
        ("iid-overlap0.9x4", [], "should borrow 2592, but the others hold 287"),
    ],
)
def test_shards_that_cannot_be(fresh: Project, partition: str, options: list[str], message: str):
    assert message in cohort(
        fresh, "shards", partition, "--dataset", "digits", "--clients", "5", *options, fails=True
    )


def test_shards_say_what_nobody_holds_and_what_is_set_aside(fresh: Project):
    """1,437 samples less 137 are 260 for each of 5 clients. 52 are replaced by samples that others keep; each sets aside 26."""
    options = ["--dataset", "digits", "--clients", "5", "--validation", "137"]
    text = cohort(fresh, "shards", "iid-overlap0.2x1-replace", *options)
    assert "overlapping clients: 1, borrowing 20.0% to 20.0% of their samples\n" in text
    assert "samples that nobody holds: 52\nsamples set aside for validation: 137\n" in text
    held_out = cohort(fresh, "shards", "iid", *options, "--holdout", "0.1")
    assert (
        f"samples set aside for validation: {137 + 5 * 26}\n" in held_out
        and "nobody holds" not in held_out
    )
    assert "\nsamples per client       234     234     234\n" in held_out
    empty = cohort(
        fresh, "shards", "dirplain-0.01-minimum0", "--dataset", "digits", "--clients", "25"
    )
    assert "\nsamples per client         0  " in empty


def test_run_of_no_cell(finished: Project):
    assert "'nonsense' is no cell: give the path" in cohort(finished, "run", "nonsense", fails=True)
    record = finished.records()[0].relative_to(finished.root)
    assert "exists: delete it to train the cell again" in cohort(finished, "run", str(record))


def test_only_counts_the_cells_of_the_study_that_is_named(fresh: Project):
    study = fresh.study()
    study["experiments"]["one"]["axes"]["strategy"] = ["skewed", "loss"]
    (fresh.root / "config/studies/other.yaml").write_text(yaml.safe_dump(study))
    only = ("--config", "only=strategy=skewed")
    for command in ("status", "cost"):
        lines = [line.split() for line in cohort(fresh, command, "other", *only).splitlines()]
        shown = [line for line in lines if line and line[0].startswith(("tiny.", "other."))]
        assert [line[0] for line in shown] == ["other.one"] and "2" in shown[0]
        message = cohort(fresh, command, *only, fails=True)
        assert message.startswith("error: only strategy=skewed matches no cell of tiny (allowed: ")
    message = cohort(fresh, "cost", "other", "--config", "only=strategy=skewd", fails=True)
    assert "only strategy=skewd matches no cell of other; did you mean 'skewed'?" in message


def test_output_that_nobody_reads_to_its_end_is_no_error(finished: Project):
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cohort", "status"],
            cwd=finished.root,
            env=os.environ | {"PYTHONPATH": str(finished.root / "workflow")},
            text=True,
            stdout=write,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
