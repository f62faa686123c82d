"""`--profile slurm` where there is no SLURM: one sentence at once, and a plan all the same where only that is asked for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cohort.pipeline.slurm import SLURM_COMMANDS
from tests.pipeline.test_slurm import program
from tests.workflow.conftest import Project

TOOLS = ("bash", "sh", "env", "git", "uname", "which", "touch")
ABSENT = "error: SLURM's commands are not on this machine (sbatch, scontrol, scancel, squeue, sinfo); start on a login node of the cluster, or without"
SILENT = "error: SLURM's controller does not answer (scontrol ping says more); start again when it does, or start on a login node"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """All that is on the PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in TOOLS:
        if result := shutil.which(name):
            (folder / name).symlink_to(result)
    return folder


def slurm(project: Project, programs: Path, *arguments: str) -> tuple[int, list[str]]:
    if not (project.root / "slurm").exists():
        (project.root / "slurm").symlink_to("profiles/slurm")
    command = [sys.executable, "-m", "snakemake", "--profile", "slurm", *arguments]
    options = {"cwd": project.root, "env": os.environ | {"PATH": str(programs)}, "text": True}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    return done.returncode, done.stdout.splitlines()


def test_without_its_commands(fresh: Project, programs: Path):
    status, lines = slurm(fresh, programs)
    assert status == 1
    assert lines[-1].startswith(ABSENT) and len(lines) <= 4, lines
    assert not (fresh.root / "results").exists()


@pytest.mark.parametrize(
    "lines", [["echo 'Slurmctld(primary) at head is DOWN'", "exit 1"], ["exec sleep 60"]]
)
def test_without_a_controller(fresh: Project, programs: Path, lines: list[str]):
    for name in SLURM_COMMANDS:
        program(programs, name, "touch submitted")
    program(programs, "scontrol", *lines)
    (programs / "sleep").symlink_to(shutil.which("sleep"))
    fresh.replace("workflow/cohort/pipeline/slurm.py", "SECONDS = 15", "SECONDS = 0.5")
    status, output = slurm(fresh, programs)
    assert status == 1 and output[-1].startswith(SILENT) and len(output) <= 4, output
    assert not (fresh.root / "submitted").exists()


def test_a_dry_run_needs_no_cluster(fresh: Project, programs: Path):
    status, lines = slurm(fresh, programs, "-n")
    assert status == 0 and ["train", "6"] in [line.split() for line in lines]


def trained(lines: list[str]) -> list[str]:
    return re.findall(r"^rule train:\n(?: .*\n)+", "\n".join(lines), re.MULTILINE)


def test_what_a_job_asks_for_and_how_a_user_overrules_it(fresh: Project, programs: Path):
    for options, memory in (((), 2000), (("--set-resources", "train:mem_mb=9000"), 9000)):
        _, lines = slurm(fresh, programs, "-n", "--quiet", "host", *options, "--", "tiny_fig2")
        requested = [f"mem_mb={memory}" in job and "runtime=30" in job for job in trained(lines)]
        assert requested == [True, True]
