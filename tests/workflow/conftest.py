"""A project whose tiny study has run to the end, once for all tests; each test works on a copy of it."""

from __future__ import annotations

import compileall
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from benchmarks.project import copy_project
from cohort.plan import load
from tests.workflow import forked

TINY = yaml.safe_load("""
title: Tiny
settings:
  {dataset: digits, clients: 10, cohort: 3, rounds: 4, batch: 16, lr: 0.05, reserve: 60,
   model: small-mlp, evaluate_every: 2}
experiments:
  one:
    axes: {partition: [iid, classes-2], J: [J2], strategy: [fedavg, fedentopt], seed: [0]}
  two:
    axes: {partition: [iid], J: [J3], strategy: [fedavg], seed: [0, 1]}
figures:
  fig1: {experiment: one, kind: curves, metric: test_accuracy, columns: partition}
  fig2: {experiment: two, kind: bars, metric: cohort_entropy, at: mean, x: partition}
tables:
  tab1: {experiment: one, metric: test_accuracy, rows: [partition], columns: strategy}
""")
CELLS = {"one": 4, "two": 2}


def with_programs() -> dict[str, str]:
    """The environment in which `snakemake` is the one that is installed beside this Python."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@dataclass
class Project:
    """A working directory in which Snakemake is started as a user would."""

    root: Path
    program: ClassVar[tuple[str, ...]] = ("snakemake",)

    def start(self, *arguments: str, **options) -> subprocess.Popen:
        return subprocess.Popen(
            [*self.program, *arguments],
            cwd=self.root,
            env=with_programs(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **options,
        )

    def snakemake(self, *arguments: str, fails: bool = False, timeout: float = 300) -> str:
        command = [*self.program, *arguments]
        done = forked.run(command, self.root, with_programs(), merged=True, timeout=timeout)
        assert (done.returncode != 0) == fails, done.stdout
        return done.stdout

    def planned(self, *arguments: str) -> dict[str, int]:
        """How many jobs of each rule a dry run plans."""
        return jobs(self.snakemake("-n", *arguments))

    def cells(self, **overrides: str) -> list[str]:
        """The records of the listed studies, in their order, without a start of Snakemake."""
        with contextlib.chdir(self.root):
            return [str(cell.path) for cell in load(overrides).cells.values()]

    def study(self) -> dict:
        """The study as it stands; `write` puts it back."""
        return yaml.safe_load((self.root / "config/studies/tiny.yaml").read_text())

    def narrow(self) -> None:
        """Leave experiment two, of two cells and one figure, in the study."""
        study = self.study()
        del study["experiments"]["one"], study["figures"]["fig1"], study["tables"]
        self.write(study)

    def write(self, study: dict) -> None:
        (self.root / "config/studies/tiny.yaml").write_text(yaml.safe_dump(study, sort_keys=False))

    def records(self) -> list[Path]:
        return sorted(
            path
            for path in (self.root / "results/cells").rglob("*.h5")
            if ".state" not in str(path) and path.name[0] != "."
        )

    def replace(self, file: str, old: str, new: str) -> None:
        text = (self.root / file).read_text()
        assert old in text
        (self.root / file).write_text(text.replace(old, new))


def jobs(output: str) -> dict[str, int]:
    """How many jobs of each rule Snakemake announced, in a dry run or before it ran them."""
    result = dict(re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE))
    assert result or "Nothing to be done" in output, output
    return {rule: int(count) for rule, count in result.items() if rule not in ("total", "all")}


def wait_for(condition: Callable[[], object], seconds: float = 120, every: float = 0.01) -> None:
    """Look again and again, but not for ever."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(every)


def tiny_project(folder: Path) -> Project:
    project = Project(copy_project(folder))
    for file in (folder / "config/studies").glob("*.yaml"):
        if file.stem != "ucb":  # whose cells are few: others take seconds to plan
            file.unlink()
    project.write(TINY)
    project.replace("config/config.yaml", "studies: [demo]", "studies: [tiny]")
    compileall.compile_dir(folder / "workflow", quiet=1)  # else each process does, in each copy
    return project


def copy_of(project: Project, folder: Path) -> Project:
    """A copy with all times, so that its compiled code is as good as that of the original."""
    return Project(Path(shutil.copytree(project.root, folder, symlinks=True)))


def made_once(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]
) -> Project:
    """A project that the first worker who asks for it makes, for all workers."""
    base = factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, aside = root / name, root / f".{name}"
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(aside, ignore_errors=True)
            make(aside)
            aside.rename(folder)
    return Project(folder)


@pytest.fixture(scope="session")
def fresh_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return made_once(tmp_path_factory, "tiny", tiny_project)


@pytest.fixture(scope="session")
def finished_once(fresh_once: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return made_once(
        tmp_path_factory, "finished", lambda folder: copy_of(fresh_once, folder).snakemake()
    )


@pytest.fixture
def finished(finished_once: Project, tmp_path: Path) -> Project:
    """A copy of the finished project, with Snakemake's own notes and all times."""
    return copy_of(finished_once, tmp_path / "project")


@pytest.fixture
def fresh(fresh_once: Project, tmp_path: Path) -> Project:
    """The tiny project before its first run."""
    return copy_of(fresh_once, tmp_path / "fresh")
