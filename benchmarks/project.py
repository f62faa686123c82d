"""A copy of the project in which studies of the benchmarks are planned and run."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.peers import ROOT
from cohort.plan import Plan, load

PARTS = (
    "Snakefile",
    "rules",
    "workflow",
    "config",
    "profiles",
    "resources/paper_values",
    "environment.yml",
)


def copied(target: Path, root: Path = ROOT) -> Path:
    """Copy the project's files, without results, into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        source = root / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target / part)
    return target


def add_study(
    project: Path, name: str, settings: Mapping[str, Any], axes: Mapping[str, Any]
) -> None:
    """A study of one experiment."""
    study = {
        "title": name,
        "settings": dict(settings),
        "experiments": {"main": {"axes": dict(axes)}},
    }
    (project / f"config/studies/{name}.yaml").write_text(yaml.safe_dump(study))


def planned(project: Path, study: str) -> Plan:
    """The plan of a study."""
    with contextlib.chdir(project):
        return load({"studies": study})


def environment(project: Path, base: Mapping[str, str]) -> dict[str, str]:
    """What a command in the project finds."""
    return dict(base) | {"PYTHONPATH": str(project / "workflow")}
