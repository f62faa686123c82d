"""Copies of the project in which benchmarks and tests plan and run studies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.peers import ROOT

FOLDERS = ("rules", "workflow", "config", "profiles", "resources/paper_values")
FILES = ("Snakefile", "environment.yml")
PARTS = (*FOLDERS, *FILES)


def copy_project(target: Path, root: Path = ROOT) -> Path:
    """Copy the project's files, without results, into a folder; return the folder."""
    target.mkdir(parents=True, exist_ok=True)
    for part in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / part, target / part, ignore=ignored)
    for part in FILES:
        shutil.copy2(root / part, target / part)
    return target


def add_study(
    project: Path, name: str, settings: Mapping[str, Any], axes: Mapping[str, Any]
) -> None:
    """Write a study with one experiment into a project folder."""
    study = {"title": name, "settings": settings, "experiments": {"main": {"axes": axes}}}
    (project / f"config/studies/{name}.yaml").write_text(yaml.safe_dump(study))


def digests(project: Path, study: str) -> list[str]:
    """The digests of a study's cells, planned by the project folder's own code."""
    program = f"from cohort.plan import load; print(*load({{'studies': '{study}'}}).cells)"
    output = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project,
        env=environment(project, os.environ),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return output.split()


def environment(project: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Environment variables with which a command imports `cohort` from a project folder. Python
    keeps what it compiles there, as it does by default."""
    variables = {name: value for name, value in base.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return variables | {"PYTHONPATH": str(project / "workflow")}
