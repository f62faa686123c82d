"""The command line as a user runs it, and what it may not leave behind where it fails."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess

from cohort.commands import run
from cohort.plan import load
from tests.workflow import forked
from tests.workflow.conftest import Project

NOT_OURS = ("logs", "plan", ".snakemake", "workflow")
"""What may be written also where a command fails."""
Done = subprocess.CompletedProcess[str]


def cohort(project: Project, *arguments: str, limit: int | None = None) -> Done:
    """The command line, perhaps under a limit to the size of files, which is a full disk for whoever may not make one."""
    environment = os.environ | {"PYTHONPATH": str(project.root / "workflow")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"}
    return forked.run(["cohort", *arguments], project.root, environment, limit=limit)


def fails(
    project: Project,
    sentence: str,
    *arguments: str,
    limit: int | None = None,
    makes: str = "nothing",
) -> None:
    """Assert that a command ends with this one sentence and changes no file; it creates none but
    those whose paths begin with `makes`."""
    before = files(project)
    done = cohort(project, *arguments, limit=limit)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, (
        done.stdout + done.stderr
    )
    assert sentence in done.stderr, done.stderr
    after = files(project)
    compared = {path for path in after if path in before or not path.startswith(makes)}
    assert {path: after[path] for path in compared} == before


def files(project: Project) -> dict[str, str]:
    """Every file that a command is to make or to leave alone, and what is in it."""
    result = (
        path
        for path in project.root.rglob("*")
        if path.is_file() and not set(path.relative_to(project.root).parts) & set(NOT_OURS)
    )
    return {
        str(path.relative_to(project.root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in result
        if path.suffix != ".lock" and path.name not in ("lease", "driver.lock")
    }


def make_data(project: Project, dataset: str = "digits", **config: str) -> None:
    """Download and prepare a data set, as cells of it would."""
    with contextlib.chdir(project.root):
        plan = load(config)
        run.make_data(plan, plan._resolver.plan_data(dataset).path)
