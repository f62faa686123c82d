"""A SLURM that is started for these tests and stopped after them, and projects that run on it as a lab's would."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workflow.conftest import Project, tiny_project

STATE = Path("/var/tmp/cohort-slurm")
USERS = STATE.with_suffix(".users")  # test processes: the first starts it, the last stops it
SCRIPTS = Path(__file__).parent / "cluster"
OFTEN = {
    "slurm-status-command": "squeue",
    "slurm-init-seconds-before-status-checks": 2,
    "max-status-checks-per-second": 1,
}
CELLS = 8
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED")


@pytest.fixture(scope="session", autouse=True)
def slurm() -> Iterator[None]:
    """Start a real SLURM on this machine for the session, and stop it at its end."""
    if not all(shutil.which(program) for program in ("slurmctld", "slurmd", "sbatch", "munged")):
        pytest.skip(
            "SLURM is not installed here: tests/slurm/cluster/install.sh installs Debian's packages"
        )
    if os.geteuid() != 0:
        pytest.skip("only root can start a SLURM")
    del os.environ["SLURM_CONF"]  # of an empty file, by which no other test asks a cluster
    with _users() as users:
        started = (
            None
            if users
            else subprocess.run([SCRIPTS / "start.sh", STATE], text=True, stderr=subprocess.PIPE)
        )
        if started is not None and started.returncode:
            pytest.skip(f"SLURM does not start here: {started.stderr.strip()[-2000:]}")
        users.add(os.getpid())
    yield
    with _users() as users:
        users.discard(os.getpid())
        if not users:
            subprocess.run([SCRIPTS / "stop.sh", STATE], check=True)


@contextmanager
def _users() -> Iterator[set[int]]:
    with open(USERS, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        users = {int(pid) for pid in file.read().split() if Path("/proc", pid).exists()}
        yield users
        file.truncate(0)
        file.write(" ".join(map(str, users)))


@dataclass(frozen=True)
class Job:
    """A job as `squeue` and `scontrol` describe it."""

    number: str
    state: str
    restarts: int
    memory: str
    limit: str
    cards: bool


class Lab(Project):
    """A project with a profile of its own, made from the one that is shipped."""

    program = (sys.executable, str(Path(__file__).with_name("impatient.py")))

    def snakemake(self, *arguments: str, fails: bool = False, timeout: float = 300) -> str:
        """Start it as a process of its own, not forked as in other tests."""
        driver = self.start(*arguments)
        output, _ = driver.communicate(timeout=timeout)
        assert (driver.returncode != 0) == fails, output
        return output

    def profile(self, partition: str = "work", card: bool = False, **changes: Any) -> None:
        """Write it: as shipped, but asking SLURM often, in a partition, with or without a card for each cell."""
        profile = yaml.safe_load((self.root / "profiles/slurm/profile.yaml").read_text())
        if not card:
            del profile["set-resources"]
        profile |= (
            OFTEN
            | {
                "latency-wait": 10,
                "default-resources": {"slurm_partition": partition, "runtime": 5},
            }
            | changes
        )
        if "slurm-no-requeue" in changes:
            del profile["slurm-requeue"]
        folder = self.root / "lab"
        folder.mkdir(exist_ok=True)
        (folder / "profile.yaml").write_text(yaml.safe_dump(profile))

    def cells(self, count: int, **settings: Any) -> None:
        """Write a study of `count` cells (J1, J2, ...) with these settings."""
        study = self.study()
        study["settings"] |= settings
        study["experiments"]["one"]["axes"]["J"] = [f"J{steps}" for steps in range(1, count + 1)]
        self.write(study)

    def run(self, fails: bool = False, timeout: float = 300) -> str:
        """Train on the cluster, and wait for the driver's end."""
        return self.snakemake("--profile", "lab", "--until", "train", fails=fails, timeout=timeout)

    def begin(self) -> subprocess.Popen:
        """Start the driver as a session of its own, training only."""
        return self.start("--profile", "lab", "--until", "train", start_new_session=True)

    def jobs(self) -> list[Job]:
        """The jobs that were ever submitted from here."""
        text = command("squeue", "--states=all", "--noheader", "--format=%i|%Z")
        numbers = [
            line.split("|")[0] for line in text.splitlines() if line.split("|")[1] == str(self.root)
        ]
        return [_job(number) for number in sorted(numbers, key=int)]

    def running(self) -> list[Job]:
        """The jobs that SLURM runs now."""
        return [job for job in self.jobs() if job.state == "RUNNING"]

    def processes(self) -> list[int]:
        """Process IDs of the training processes of this project."""
        mark = f"{self.root}/.snakemake/scripts/".encode()
        return [
            int(folder.name)
            for folder in Path("/proc").glob("[0-9]*")
            if mark in _command_line(folder) and b"train.py" in _command_line(folder)
        ]

    def training(self) -> dict[int, Path]:
        """For each process that trains, where its cell keeps its state."""
        folders: dict[int, Path] = {}
        for process in self.processes():
            for file in Path(f"/proc/{process}/fd").glob("*"):
                with contextlib.suppress(OSError):  # closed meanwhile
                    if (opened := file.readlink()).name == "lease":
                        folders[process] = opened.parent
        return folders

    def checkpoints(self) -> list[Path]:
        """The checkpoints of cells that are not done."""
        return list((self.root / "results/cells").rglob("checkpoint.safetensors"))


def command(*arguments: str) -> str:
    """Run a command of SLURM and return what it prints."""
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def _job(number: str) -> Job:
    text = command("scontrol", "show", "job", number)

    def field(key: str) -> str:
        result = re.search(rf"\b{key}=(\S+)", text)
        return result[1] if result else ""

    return Job(
        number,
        field("JobState"),
        int(field("Restarts")),
        field("MinMemoryNode"),
        field("TimeLimit"),
        "gpu" in field("TresPerJob"),
    )


def _command_line(folder: Path) -> bytes:
    try:
        return (folder / "cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture(scope="session")
def dealt(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Eight cells of a few rounds on the same shards, which are there."""
    lab = Lab(tiny_project(tmp_path_factory.mktemp("dealt") / "lab").root)
    study = lab.study()
    study["experiments"] = {"one": study["experiments"]["one"]}
    study["experiments"]["one"]["axes"] |= {
        "partition": ["iid"],
        "J": [f"J{steps}" for steps in range(1, CELLS + 1)],
        "strategy": ["fedavg"],
    }
    study["figures"] = {"fig1": study["figures"]["fig1"] | {"hue": "J"}}
    del study["tables"]
    lab.write(study)
    lab.replace("config/config.yaml", "checkpoint_seconds: 60", "checkpoint_seconds: 0.5")
    lab.snakemake("--until", "deal")
    return lab


@pytest.fixture
def lab(dealt: Lab, tmp_path: Path) -> Iterator[Lab]:
    """A project whose shards are dealt, ready for the cluster; what it leaves running is stopped."""
    lab = Lab(Path(shutil.copytree(dealt.root, tmp_path / "lab", symlinks=True)))
    lab.profile()
    yield lab
    for job in lab.jobs():
        if job.state not in OVER:
            subprocess.run(["scancel", job.number], check=False)
