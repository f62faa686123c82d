"""Results put together, inputs that went away, a record that shows up late: nothing is lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cohort.records.record import read
from tests.workflow.conftest import Project, jobs
from tests.workflow.test_kill import assert_same_numbers

LATE = """
    import subprocess, sys
    late = Path(record).with_name(".late.h5").absolute()
    shutil.copyfile(finished, late)
    code = f"import os, time; time.sleep(3); os.rename({str(late)!r}, {str(Path(record).absolute())!r})"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    return
"""


@pytest.mark.slow
def test_results_of_a_laptop_and_of_a_cluster(
    fresh: Project, finished_once: Project, tmp_path: Path
):
    """Their cells are put together: nothing is trained again, the rest is drawn, and then there is nothing to do."""
    (laptop := fresh).snakemake("tiny_fig2")
    own = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in laptop.records()}
    assert 0 < len(own) < len(finished_once.records())
    for record in finished_once.records():
        target = laptop.root / record.relative_to(finished_once.root)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(record, target)  # as `rsync` does: what arrives is new
    shutil.rmtree(laptop.root / ".snakemake")
    assert not {"train", "deal", "prepare", "download"} & set(jobs(laptop.snakemake()))
    assert (laptop.root / "results/full/figures/tiny/fig1.png").exists()
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in own} == own
    assert "Nothing to be done" in laptop.snakemake()


@pytest.mark.slow
def test_training_on_request_without_shards_and_data(finished: Project):
    """Snakemake removes a record before its job runs, which gets what it needs."""
    finished.narrow()
    undisturbed = {path: read(path) for path in finished.records() if "/J3/" in str(path)}
    shutil.rmtree(finished.root / "results/shards")
    shutil.rmtree(finished.root / "resources/data")
    ran = jobs(finished.snakemake("tiny_fig2", "-R", "train"))
    assert (ran["train"], ran["prepare"]) == (2, 1)
    for path, record in undisturbed.items():
        assert_same_numbers(record, read(path))
    assert finished.planned("tiny_fig2") == {}


@pytest.mark.long
def test_records_and_shards_dated_in_the_future(finished: Project):
    """A clock that was ahead leaves such times, at which Snakemake would delete what is made from the files."""
    missing = next(path for path in finished.records() if "/J3/" in str(path))
    missing.unlink()
    shutil.rmtree(finished.root / "results/full")
    for path in [*finished.records(), *(finished.root / "results/shards").rglob("*.h5")]:
        os.utime(path, (4e9, 4e9))
    output = finished.snakemake("tiny_fig2", "tiny_tab1")
    assert jobs(output)["train"] == 1 and missing.exists()
    assert finished.planned("tiny_fig2", "tiny_tab1") == {}


@pytest.mark.long
def test_a_record_that_shows_up_late(finished: Project):
    """On a network file system the rename shows seconds after the job ended. Snakemake waits, and nothing runs twice."""
    record = next(path for path in finished.records() if "/J3/" in str(path))
    undisturbed = read(record)
    record.unlink()
    begin = "    with atomic_write(record) as temporary:\n"
    finished.replace("workflow/cohort/training/job/lease.py", begin, LATE + begin)
    output = finished.snakemake("--latency-wait", "10")
    assert output.count("(Rule: train)") == 1, output
    log = (
        finished.root
        / "results/logs/train"
        / record.relative_to(finished.root / "results/cells").with_suffix(".log")
    )
    assert record.stat().st_ctime - log.stat().st_mtime > 2, "it was not late"
    assert_same_numbers(undisturbed, read(record))
    assert not record.with_suffix(".state").exists()
    assert finished.planned() == {}


@pytest.mark.slow
def test_a_record_that_an_orphan_publishes_while_the_driver_starts(finished: Project):
    """Snakemake has planned its cell already, and deletes it before the cell's job."""
    path = finished.records()[0]
    content = path.read_bytes()
    state = path.with_suffix(".state") / "finished.h5"
    state.parent.mkdir(exist_ok=True)
    path.rename(state)
    publish = f"import os; os.link({str(state)!r}, {str(path)!r}); driver.on_start()"
    finished.replace("Snakefile", "driver.on_start()", publish)
    finished.snakemake()
    assert path.read_bytes() == content and not state.exists()
