"""`python -m benchmarks.gpu`, tried on a CPU, with no more packages than a GPU machine may have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import __main__ as bench
from benchmarks.gpu import PIECES, results
from benchmarks.gpu.results import section
from benchmarks.tables import put_section
from tests.conftest import ROOT

ABSENT = ["pytest", "snakemake", "pyarrow", "jsonschema", "seaborn", "matplotlib", "llvmlite"]
ABSENT += ["PIL", "torchvision", "psutil", "yaml", "rich", "jinja2", "scipy", "sklearn", "tenseal"]
HIDER = f"""
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in {ABSENT} else self.finder.find_spec(name, *rest)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
"""


@pytest.fixture
def lean(tmp_path: Path) -> dict[str, str]:
    """An environment in which Python cannot import these packages, in child processes too."""
    (tmp_path / "sitecustomize.py").write_text(HIDER)
    return os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.long
def test_a_trial_on_a_cpu_runs_every_piece(lean: dict[str, str], tmp_path: Path):
    file = tmp_path / "trial.json"
    command = ["-m", "benchmarks.gpu", "all", "--device", "cpu", "--commit", "c1"]
    command = [sys.executable, *command, "--into", str(file)]
    done = subprocess.run(command, cwd=ROOT, env=lean, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    entries = results.read_entries(file)
    assert list(entries) == list(PIECES)
    for entry in entries.values():
        assert entry["rows"] and entry["failures"] == [] and entry["commit"] == "c1"
        assert entry["torch"] == torch.__version__
    assert {row["holds"].split(":")[0] for row in entries["checks"]["rows"]} == {"yes", "skipped"}
    rows = entries["rounds"]["rows"]
    trainers = ["serial", "batched, without kernels", "batched", "batched, 2 cells"]
    assert [row["trainer"] for row in rows] == 2 * trainers
    assert all((row["error"] is None) == (row["trainer"] == trainers[-1]) for row in rows)
    assert all(row["error"] is None or 0 < row["error"] < 1e-5 for row in rows)
    text = section(entries).markdown()
    assert "| W2a " in text and "commit c1" in text


def test_a_failure_keeps_the_rows_and_is_shown(tmp_path: Path):
    file = tmp_path / "gpu.json"
    entry = dict.fromkeys(("device", "driver", "python", "torch", "date", "commit"), "x")
    rows = [{"workload": "W1", "s": 0.01234, "memory, MB": None}, {"workload": "W2", "rounds": 3}]
    results.put_entry(file, "rounds", entry | {"rows": rows, "failures": []})
    results.add_failure(file, "rounds", "the process ended with status 1")
    result = section(results.read_entries(file))
    assert "| W1       | 0.0123 | -          | -      |" in result.markdown()
    assert "| W2       | -      | -          | 3      |" in result.markdown()
    assert result.failures == ["rounds: the process ended with status 1"]


def test_the_page_shows_what_was_measured_on_a_gpu():
    text = bench.PAGE.read_text()
    entries = results.read_entries(bench.RESULTS)
    assert text == put_section(text, "gpu", section(entries).markdown()), (
        "run `make bench ONLY=gpu`"
    )
