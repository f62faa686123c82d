"""The house keeps its shape: no arrow uphill, no long file, one list of packages, one policy."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter

import yaml

from tests.house import DESIGN, FLOORS, ROOT, arrows, modules

CONDA_NAMES = {"pytorch": "torch"}


def test_no_arrow_goes_uphill():
    floor = {part: number for number, parts in enumerate(FLOORS) for part in parts}
    assert set(floor) == set(modules())
    assert [arrow for arrow in sorted(arrows()) if floor[arrow[0]] < floor[arrow[1]]] == []


def test_no_arrow_leads_back():
    graph: dict[str, set[str]] = {}
    for importer, imported in arrows():
        graph.setdefault(importer, set()).add(imported)
    assert list(
        TopologicalSorter(graph).static_order()
    )  # raises where parts import each other in a circle


def test_the_picture_in_the_design_is_true():
    drawn = set(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", DESIGN.read_text(), re.MULTILINE))
    shown = {
        (part, imported)
        for part, row in drawn
        for imported in row.strip().split(", ")
        if imported != "-"
    }
    assert shown == arrows(), "run `make house`"


def test_no_module_is_long():
    for files in modules().values():
        for file in files:
            assert len(file.read_text().splitlines()) <= 300, file
    assert len((ROOT / "Snakefile").read_text().splitlines()) <= 70


def test_rules_define_no_functions():
    for file in (ROOT / "rules").glob("*.smk"):
        assert not re.search(r"\b(def|lambda|run:)\b", file.read_text()), file


def test_planning_needs_no_heavy_package():
    heavy = "torch pandas matplotlib seaborn sklearn scipy h5py pyarrow"
    code = f"import cohort.plan, sys; sys.exit(str([name for name in '{heavy}'.split() if name in sys.modules] or ''))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "workflow", capture_output=True, text=True
    )
    assert done.stderr.strip() == ""


def test_conda_and_pip_name_the_same_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pairs = [re.fullmatch(r"([\w.-]+)(.*)", line).groups() for line in conda]
    assert {(CONDA_NAMES.get(name, name), bound) for name, bound in pairs} == {
        re.fullmatch(r"([\w.-]+)(.*)", line).groups()
        for line in [*project["dependencies"], "python" + project["requires-python"]]
    }


def test_both_profiles_state_one_policy():
    default, slurm = (
        yaml.safe_load((ROOT / f"profiles/{name}/profile.yaml").read_text())
        for name in ("default", "slurm")
    )
    assert {key: slurm[key] for key in default} == default
    assert (ROOT / "slurm").resolve() == ROOT / "profiles/slurm"
