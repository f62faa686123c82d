"""Disks that are full or can only be read: one clear sentence, a non-zero exit, nothing half-written and nothing lost."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cohort.records.record import read
from tests.workflow.commands import cohort, fails, files, make_data
from tests.workflow.conftest import Project
from tests.workflow.test_kill import one_cell

GROWS = "the file grows beyond the size limit; raise it (ulimit -f) and start again"
FULL = "the disk is full; make room and start again"


def test_no_room_for_what_a_stage_makes(fresh: Project):
    """The results of earlier stages stay; with room again the command continues, from the previous checkpoint."""
    cell, record = one_cell(fresh)
    raw, data = "resources/raw/digits/digits.csv.gz", "resources/data/digits-k"
    shards = "results/shards/digits/classes-2/clients10-seed0-k"
    fails(fresh, f"{raw}: {GROWS}", "run", cell, limit=20_000)
    fails(fresh, f".h5: {GROWS}", "run", cell, limit=80_000, makes=raw)
    make_data(fresh)
    fails(fresh, f".h5: {GROWS}", "run", cell, limit=8_000)
    assert not list(fresh.root.glob(f"{shards}*")) and len(list(fresh.root.glob(f"{data}*"))) == 1
    state = str(Path(cell).with_suffix(".state"))
    fails(fresh, f"{state}/finished.h5: {GROWS}", "run", cell, limit=20_000, makes=shards)
    assert cohort(fresh, "run", "--until", "2", "--", cell).returncode == 0
    often = ("--config", "checkpoint_seconds=0.001", "--", cell)
    fails(fresh, f"{state}/checkpoint.safetensors: {GROWS}", "run", *often, limit=20_000)
    assert cohort(fresh, "run", cell).returncode == 0
    sessions = read(record).header["provenance"]["sessions"]
    assert [session["from_round"] for session in sessions] == [0, 2]


@pytest.fixture
def mounted() -> Iterator[Callable[..., Path]]:
    """Mounts a folder as `mount` does with these arguments; skips the test where that is not permitted."""
    folders = []

    def mount(*arguments: str, folder: Path) -> Path:
        if not shutil.which("mount"):
            pytest.skip("there is no program mount")
        done = subprocess.run(["mount", *arguments, str(folder)], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"nothing can be mounted here ({done.stderr.strip()})")
        folders.append(folder)
        return folder

    yield mount
    for folder in reversed(folders):
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.long
def test_a_disk_that_fills_up_during_a_run(finished: Project, mounted: Callable[..., Path]):
    """What happens after the failure fails too, in one sentence without a stack."""
    results, backup = finished.root / "results", finished.root / "kept"
    next(path for path in finished.records() if "/J3/" in str(path)).unlink()
    results.rename(backup)
    results.mkdir()
    mounted("-t", "tmpfs", "-o", "size=4m", "tmpfs", folder=results)
    shutil.copytree(backup, results, dirs_exist_ok=True)
    free = shutil.disk_usage(results).free
    (results / "other").write_bytes(bytes(free - 24 * 1024))
    output = finished.snakemake("tiny_fig2", fails=True)
    assert f"finished.h5: {FULL} (log: " in output
    assert re.search(rf"\nerror: results/\S+: {FULL}\n", output), output
    assert "\n  File " not in output and "Traceback" not in output, output
    (results / "other").unlink()
    finished.snakemake("tiny_fig2")


def by_mount(results: Path, mounted: Callable[..., Path]) -> str:
    mounted("--bind", "-o", "ro", str(results), folder=results)
    return "the disk is read-only; work in a folder that can be written and start again"


def by_file(results: Path, mounted: Callable[..., Path]) -> str:
    results.rename(results.with_name("kept"))
    results.write_text("a file")
    return "results: a file stands where a folder is needed; move it away and start again"


@pytest.mark.slow
@pytest.mark.parametrize("means", [by_mount, by_file], ids=lambda means: means.__name__)
def test_results_that_cannot_be_written(
    finished: Project, means: Callable[..., str], mounted: Callable[..., Path]
):
    record = finished.records()[0]
    record.unlink()
    digest = record.stem.rpartition("-")[2]
    (finished.root / "results/plan" / f"{digest}.json").unlink()
    sentence = means(finished.root / "results", mounted)
    fails(finished, sentence, "run", digest)
    before = files(finished)
    output = finished.snakemake(fails=True)
    assert "results" in output and sentence in output and "Traceback" not in output, output
    assert files(finished) == before
    subprocess.run(["chmod", "-R", "u+w", str(finished.root)], check=False)
