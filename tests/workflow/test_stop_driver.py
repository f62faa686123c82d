"""A driver that is told to stop: its cells save their place, it ends, and nothing is lost."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.workflow.conftest import Project, wait_for
from tests.workflow.test_command_line import counts
from tests.workflow.test_kill import lengthen

SIGNALS_UNDER_LOCK = """
import os, signal, threading, time

scheduler = workflow.scheduler
finish_jobs = scheduler._finish_jobs


def finish_jobs_with_signals():
    assert scheduler._lock.locked()
    if os.path.exists("signal"):
        number = int(open("signal").read())
        os.remove("signal")
        for _ in range(3):
            signal.raise_signal(number)
    finish_jobs()


def wake_scheduler():
    while not os.path.exists("signal"):
        time.sleep(0.1)
    scheduler._open_jobs.release()


scheduler._finish_jobs = finish_jobs_with_signals
threading.Thread(target=wake_scheduler, daemon=True).start()
"""


def begin(project: Project, limit: str) -> subprocess.Popen:
    """Start a driver with two cells that take hours, and wait until each has a checkpoint."""
    lengthen(project, 100_000)
    project.replace("config/config.yaml", "checkpoint_seconds: 60", "checkpoint_seconds: 0.3")
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
    driver = project.start(limit, "2", "--", "tiny_fig2")
    signal.signal(signal.SIGHUP, before)
    wait_for(lambda: len(checkpoints(project)) == 2)
    return driver


def checkpoints(project: Project) -> list[Path]:
    return list((project.root / "results/cells").rglob("checkpoint.safetensors"))


def assert_stopped(project: Project, driver: subprocess.Popen, number: int) -> None:
    """The driver ends soon, both cells have saved a checkpoint, and the next driver may start."""
    output, _ = driver.communicate(timeout=60)
    assert driver.returncode == 1 and "Traceback" not in output, output
    assert f"stopped by {signal.Signals(number).name}" in output
    assert counts(project, "two") == {"stopped": 2}, output
    for log in (project.root / "results/logs/train").rglob("*.log"):
        assert "error: stopped " in log.read_text(), log.read_text()
    project.snakemake("--until", "deal")


@pytest.mark.slow
@pytest.mark.parametrize("number, limit", [(signal.SIGHUP, "--cores"), (signal.SIGINT, "--jobs")])
def test_signals_while_the_scheduler_holds_its_lock(
    number: signal.Signals, limit: str, fresh: Project
):
    """Snakemake's own handler would wait for the lock that the thread it interrupts holds.
    With `--jobs` and the profile's `cores` it sets the settings of a cluster's nodes, too."""
    (fresh.root / "signals.py").write_text(SIGNALS_UNDER_LOCK)
    inject = "import runpy; runpy.run_path('signals.py', {'workflow': workflow})"
    fresh.replace("Snakefile", "driver.on_start()", f"driver.on_start(); {inject}")
    driver = begin(fresh, limit)
    (fresh.root / "signal.new").write_text(str(int(number)))
    (fresh.root / "signal.new").rename(fresh.root / "signal")
    try:
        assert_stopped(fresh, driver, number)
    finally:
        driver.kill()
        driver.wait()
    assert not (fresh.root / "signal").exists()
