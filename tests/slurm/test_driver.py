"""The driver where SLURM does not answer, holds a job, or where it is told to stop itself."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.slurm.conftest import Lab, command
from tests.slurm.test_faults import SHORT, the_record, wait_for
from tests.workflow.conftest import Project

CONFIG = Path("/etc/slurm/slurm.conf")


def status(lab: Lab) -> str:
    return subprocess.run(
        ["cohort", "status"], cwd=lab.root, text=True, capture_output=True, check=True
    ).stdout


@pytest.mark.parametrize("returns", [True, False], ids=["comes back", "stays away"])
def test_controller_goes_away(lab: Lab, monkeypatch: pytest.MonkeyPatch, returns: bool):
    """For this driver, whose commands ask at another port. It ends once the record exists."""
    lab.cells(1, **SHORT)
    config = lab.root / "slurm.conf"
    config.write_text(CONFIG.read_text())
    monkeypatch.setenv("SLURM_CONF", str(config))
    driver = lab.begin()
    monkeypatch.delenv("SLURM_CONF")
    wait_for(lambda: lab.processes() and lab.checkpoints())
    config.write_text(re.sub(r"SlurmctldPort=\d+", "SlurmctldPort=1", CONFIG.read_text()))
    log = max((lab.root / ".snakemake/log").glob("*.log"))  # the last
    wait_for(lambda: "Falling back to 'sacct'" in log.read_text())  # it has noticed
    if returns:
        config.write_text(CONFIG.read_text())
    wait_for(lab.records)
    output, _ = driver.communicate(timeout=200)
    assert driver.returncode == 0, output
    assert len(the_record(lab).header["provenance"]["sessions"]) == 1


def test_a_held_job_is_named(lab: Lab):
    """The driver says it once, and `cohort status` repeats it until the job is released."""
    lab.cells(1, **SHORT)
    (cell,) = Project.cells(lab)
    driver = lab.begin()
    wait_for(lambda: lab.processes() and lab.checkpoints())
    (job,) = lab.jobs()
    command("scontrol", "requeuehold", job.number)
    held = (
        f"held by SLURM: job {job.number} ({Path(cell).stem.rpartition('-')[2]}), "
        "job requeued in held state\n"
        f"  scontrol release {job.number} lets it start, scancel {job.number} gives it up"
    )
    wait_for(lambda: held in status(lab))
    time.sleep(6)  # some more checks
    command("scontrol", "release", job.number)
    output, _ = driver.communicate(timeout=200)
    assert driver.returncode == 0, output
    assert output.count(held) == output.count("held by SLURM") == 1, output
    assert "held by SLURM" not in status(lab)
    assert the_record(lab).header["provenance"]["sessions"][-1]["from_round"] > 0


def test_signals(lab: Lab):
    """After SIGTERM the driver ends and its job goes on; after Ctrl-C its job is canceled."""
    lab.cells(1, **SHORT | {"rounds": 100_000})
    for number, state in ((signal.SIGTERM, "RUNNING"), (signal.SIGINT, "CANCELLED")):
        before = len(lab.jobs())
        driver = lab.begin()
        wait_for(lambda before=before: len(lab.jobs()) > before and lab.checkpoints())
        for _ in range(5):
            driver.send_signal(number)
        output, _ = driver.communicate(timeout=100)
        assert driver.returncode == 1 and "Traceback" not in output, output
        assert f"stopped by {number.name}: jobs on the cluster " in output
        wait_for(lambda state=state: lab.jobs()[-1].state == state)  # COMPLETING comes between
    assert [job.state for job in lab.jobs()] == ["RUNNING", "CANCELLED"]
