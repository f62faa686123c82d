"""What a cell imports until its first round is over: what it uses, and nothing that only planning, preparing, dealing or drawing needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.conftest import Project

PACKAGES = {"cohort", "torch", "numpy", "h5py", "llvmlite", "safetensors"}
RESULTS = tuple(f"cohort.results.{name}" for name in ("figures", "tables", "claims"))
FOREIGN = ("cohort.plan", *RESULTS, "cohort.partition.deal", "cohort.data.parsers")
BY_HAND = "from cohort.commands.cli import main; main(['run', '{plan}', '--until', '1'])"
BY_SNAKEMAKE = """
import runpy, types
import cohort.core.process
cohort.core.process.leave = lambda: None  # what was imported is still to be printed
job = types.SimpleNamespace(input=[], log=["log"], output=["{record}"], wildcards=types.SimpleNamespace(digest="{digest}"))
runpy.run_path("workflow/scripts/train.py", {{"snakemake": job}})
"""


def printed(project: Project, *code: str) -> str:
    """The last line of a process that runs these lines."""
    environment = os.environ | {"PYTHONPATH": str(project.root / "workflow")}
    command = [sys.executable, "-c", "\n".join(code)]
    done = subprocess.run(
        command, cwd=project.root, env=environment, text=True, capture_output=True, check=True
    )
    return done.stdout.splitlines()[-1]


def imported(project: Project, *code: str) -> set[str]:
    """The modules that these lines import, beside the standard library."""
    modules = printed(project, *code, "import sys; print(*sys.modules)").split()
    return {
        name
        for name in modules
        if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith("_")
    }


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} - {"cython_runtime"}


@pytest.fixture
def missing(finished: Project) -> tuple[Path, str]:
    """A record that is not there, and the digest of its cell."""
    record = finished.records()[0]
    record.unlink()
    return record, record.stem.rpartition("-")[2]


@pytest.mark.slow
def test_a_cell_imports_only_what_it_uses(finished: Project, missing: tuple[Path, str]):
    record, digest = missing
    modules = imported(finished, BY_HAND.format(plan=f"results/plan/{digest}.json"))
    # it has trained, and has not written its record
    assert record.with_suffix(".state").exists() and not record.exists()
    alone = imported(finished, "import torch")
    assert packages(modules) - packages(alone) == PACKAGES - packages(alone)
    assert "cohort.training.trainers.serial" in modules
    assert [name for name in modules if name.startswith(FOREIGN)] == []
    assert [name for name in modules - alone if name.startswith("torch.")] == []


def test_a_job_of_snakemake_needs_schemas_for_its_record_and_no_more(
    finished: Project, missing: tuple[Path, str]
):
    record, digest = missing
    modules = imported(finished, BY_SNAKEMAKE.format(record=record, digest=digest))
    assert record.exists() and "jsonschema" in modules
    heavy = "yaml rich pandas pyarrow scipy matplotlib sklearn torchvision sympy snakemake"
    assert not packages(modules) & {*heavy.split()}
    assert [name for name in modules if name.startswith((*FOREIGN, "torch._dynamo"))] == []
