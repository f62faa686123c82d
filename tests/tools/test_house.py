"""The structure of the package: imports only go downhill, files, functions and lines are short, and
there is one list of dependencies and one policy for Snakemake."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml

from tools import house
from tools.house import LAYERS, PACKAGE, ROOT, modules, subpackage_imports

CONDA_NAMES = {"pytorch": "torch"}
LONGEST_FILE, LONGEST_FUNCTION, LONGEST_LINE = 600, 45, 100  # lines, lines, characters
MOST_THIN_MODULES = 3  # those of before the rule; the number only falls


def test_imports_go_downhill():
    layer = {name: number for number, names in enumerate(LAYERS) for name in names}
    assert set(layer) == set(modules())
    assert [
        arrow for arrow in sorted(subpackage_imports()) if layer[arrow[0]] < layer[arrow[1]]
    ] == []


def test_subpackages_do_not_import_each_other_in_a_cycle():
    graph: dict[str, set[str]] = {}
    for importer, imported in subpackage_imports():
        graph.setdefault(importer, set()).add(imported)
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_no_subpackage_exceeds_its_budget():
    """The lines in docs/design.md: a commit may lower them (`make house`), and argues to raise them."""
    budgets = house.budgets()
    assert set(budgets) == set(modules()), "run `make house`"
    sizes = house.lines_by_subpackage()
    assert {name: size for name, size in sizes.items() if size > budgets[name]} == {}


def test_a_module_has_120_lines_or_two_importers():
    thin = house.thin_modules()
    assert len(thin) <= MOST_THIN_MODULES, f"merge one of these into its importer: {thin}"


def test_no_import_inside_a_function():
    """Planning waits for no heavy package because of lazy modules, not of late imports."""
    assert house.inner_imports() == [], "use cohort.core.lazy"


def test_no_file_is_long():
    lengths = {file.relative_to(PACKAGE): house.lines_of(file) for file in house.files()}
    assert {file: lines for file, lines in lengths.items() if lines > LONGEST_FILE} == {}
    assert house.lines_of(ROOT / "Snakefile") <= 70


def test_no_function_is_long():
    bodies = ((file, body) for file in house.files() for body in house.functions(file))
    assert [
        f"{file}: {body.name} has {house.length_of(body)} lines"
        for file, body in bodies
        if house.length_of(body) > LONGEST_FUNCTION
    ] == []


def test_no_comprehension_is_inside_another():
    assert house.nested_comprehensions() == []


def test_the_checks_find_what_they_look_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bad.py").write_text(
        "class A:\n"
        "    def outer(self):\n"
        "        import torch\n"
        "        def inner():\n"
        "            from cohort.core import files\n"
        "        return [row for row in (cell for cell in self.cells)]\n"
    )
    monkeypatch.setattr(house, "PACKAGE", tmp_path)
    assert house.inner_imports() == ["bad.py: cohort.core", "bad.py: torch"]
    assert house.nested_comprehensions() == ["bad.py: line 6"]
    lengths = {body.name: house.length_of(body) for body in house.functions(tmp_path / "bad.py")}
    assert lengths == {"outer": 5, "inner": 2}
    assert house.thin_modules() == ["bad.py"]


def test_no_line_is_long():
    rule = f"--isolated --select E501 --line-length {LONGEST_LINE}".split()
    command = [sys.executable, "-m", "ruff", "check", *rule, str(PACKAGE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_rules_define_no_functions():
    for file in (ROOT / "rules").glob("*.smk"):
        assert not re.search(r"\b(def|lambda|run:)\b", file.read_text()), file


@pytest.mark.parametrize(
    ("imported", "allowed"),
    # the driver reads records
    [("cohort.plan", ""), ("cohort.pipeline.driver, cohort.pipeline.stages", "h5py")],
)
def test_planning_and_the_driver_import_no_heavy_package(imported: str, allowed: str):
    heavy = {"torch", "pandas", "matplotlib", "seaborn", "sklearn", "scipy", "h5py", "pyarrow"}
    code = f"import {imported}, sys; sys.exit(str({heavy - {allowed}} & set(sys.modules) or ''))"
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
