"""`cohort run` beside another process, the cell that a path names, and Ctrl-C under `cohort try`."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import pytest

from cohort.commands.cli import main
from cohort.commands.run import find_cell, run_cell
from cohort.core.paths import plan_file
from cohort.plan import Plan
from cohort.settings import write_plan
from cohort.training.job import train as job
from tests.commands.conftest import finish

DRIVER = """
import os, signal, time
from pathlib import Path

def stop(*_):
    time.sleep(1)  # the cells are saved
    Path("saved").touch()
    os._exit(1)

signal.signal(signal.SIGINT, stop)
for process in (os.getppid(), os.getpid()):  # as a terminal does
    os.kill(process, signal.SIGINT)
time.sleep(60)
"""


def test_a_cell_that_another_process_finishes_is_not_trained(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
):
    cell = next(iter(plan.cells.values()))
    write_plan(cell.planned())
    monkeypatch.setattr(job, "progress_display", lambda *_: nullcontext(finish(cell)))
    monkeypatch.setattr(job.Run, "begin", lambda *arguments: pytest.fail("it is trained"))
    run_cell(plan_file(cell.digest))
    assert [path.name for path in Path(cell.path).parent.iterdir()] == [Path(cell.path).name]


def test_a_cell_is_found_by_any_path_of_its_record(plan: Plan, output_of: Callable[..., str]):
    cell = next(iter(plan.cells.values()))
    finish(cell)
    for path in (Path.cwd() / cell.path, f"../{Path.cwd().name}/{cell.path}", f"./{cell.path}"):
        assert find_cell(plan, str(path)) == cell
        assert output_of("show", str(path)).splitlines()[-1] == f"{cell.path}: it is done"


@pytest.mark.parametrize("command", ["verify demo", "show demo", "run demo.fig1", "run kxyz"])
def test_a_word_that_can_be_no_cell_is_refused_before_planning(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)  # where there is nothing to plan
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    word = command.split()[1]
    sentence = f"error: '{word}' is no cell: give the path of its record, or its digest"
    assert ended.value.code == sentence


def test_a_driver_saves_its_cells_after_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job
    Path("driver.py").write_text(DRIVER)
    with pytest.raises(KeyboardInterrupt):
        import_module("cohort.commands.try").run_driver("driver")
    assert Path("saved").exists()
