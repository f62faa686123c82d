"""`python -m benchmarks.gpu`, tried on a CPU, with no more packages than a GPU machine may have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import __main__ as bench
from benchmarks import page
from benchmarks.gpu import __main__ as command
from benchmarks.gpu import results
from benchmarks.gpu.pieces import PIECES
from benchmarks.gpu.section import section
from tests.conftest import ROOT

ABSENT = [
    "pytest",
    "snakemake",
    "pyarrow",
    "jsonschema",
    "seaborn",
    "matplotlib",
    "llvmlite",
    "torchvision",
    "psutil",
    "yaml",
    "rich",
    "jinja2",
    "scipy",
    "sklearn",
    "PIL",
    "tenseal",
]
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


def ran(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, text=True, capture_output=True
    )


@pytest.mark.parametrize("name", ["llvmlite", "psutil", "pytest"])
def test_the_environment_lacks_packages(name: str, lean: dict[str, str]):
    done = ran(["-c", f"import {name}"], lean)
    assert done.returncode and f"No module named '{name}'" in done.stderr


@pytest.mark.long
def test_a_trial_on_a_cpu_runs_every_piece(lean: dict[str, str], tmp_path: Path):
    file = tmp_path / "trial.json"
    command = ["-m", "benchmarks.gpu", "all", "--device", "cpu", "--commit", "c1"]
    done = ran([*command, "--into", str(file)], lean)
    assert done.returncode == 0, done.stdout + done.stderr
    entries = results.read_entries(file)
    assert list(entries) == list(PIECES)
    for entry in entries.values():
        assert entry["rows"] and entry["failures"] == [] and entry["commit"] == "c1"
        assert entry["torch"] == torch.__version__
    assert {row["holds"].split(":")[0] for row in entries["checks"]["rows"]} == {"yes", "skipped"}
    captured = [row["captured"] for row in entries["steps"]["rows"]]
    assert captured == ["-", "-"] + 2 * ["skipped: CUDA graphs need a GPU"]
    apart = [
        row["difference"] for name in ("rounds", "convolutions") for row in entries[name]["rows"]
    ]
    assert all(result is None or result < 1e-5 for result in apart)
    text = section(entries).markdown()
    assert "not measured yet" not in text.lower() and "| W2a " in text and "commit c1" in text


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_lists_the_pieces_and_says_so(capsys: pytest.CaptureFixture[str]):
    assert command.main([]) == 1
    *listed, last = capsys.readouterr().out.splitlines()
    assert last == "there is no GPU here; `--device cpu` tries the pieces with little work"
    assert [line.split()[0] for line in listed] == list(PIECES)


def test_an_unknown_piece(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        command.main(["round"])
    assert "there is no piece round; choose from checks, rounds, " in capsys.readouterr().err


def test_a_piece_that_hangs_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(command, "HANG_SECONDS", 0.05)
    file = tmp_path / "new" / "gpu.json"
    assert command.main(["steps", "--device", "cpu", "--seconds", "0", "--into", str(file)]) == 1
    assert "steps: stopped after 0 s\n" in capsys.readouterr().out
    assert results.read_entries(file) == {"steps": {"failures": ["stopped after 0 s"]}}


def test_a_failure_keeps_the_rows_and_is_shown(tmp_path: Path):
    file = tmp_path / "gpu.json"
    machine = {"device": "A card", "driver": "1", "python": "3", "torch": "2", "date": "today"}
    rows = [{"workload": "W1", "s": 0.01234, "memory, MB": None}, {"workload": "W2", "rounds": 3}]
    results.put_entry(
        file, "rounds", machine | {"commit": "c", "seconds": 9.6, "rows": rows} | {"failures": []}
    )
    results.add_failure(file, "rounds", "the process ended with status 1")
    result = section(results.read_entries(file))
    assert result.title == "On a GPU: A card"
    assert "| W1       | 0.0123 | -          | -      |" in result.markdown()
    assert "| W2       | -      | -          | 3      |" in result.markdown()
    assert "on A card, driver 1, in 10 s. Python 3, torch 2." in result.markdown()
    assert result.failures == ["rounds: the process ended with status 1"]
    missing = [piece.title for name, piece in PIECES.items() if name != "rounds"]
    assert f"Not measured yet (`make gpu`): {'; '.join(missing)}." in result.markdown()


def test_make_bench_writes_the_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where `make gpu` has left results, and nowhere else; nothing is measured."""
    monkeypatch.setattr(bench, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(bench.readme, "write_readme", lambda: None)
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "gpu.json")
    assert bench.main(["gpu"]) == 0 and not bench.PAGE.exists()
    results.put_entry(bench.RESULTS, "steps", {"device": "A card", "failures": []})
    assert bench.main(["gpu"]) == 0
    assert "## On a GPU: A card" in bench.PAGE.read_text()


def test_the_page_shows_what_was_measured_on_a_gpu():
    text = bench.PAGE.read_text()
    entries = results.read_entries(bench.RESULTS)
    assert text == page.put_section(text, "gpu", section(entries).markdown()), (
        "run `make bench ONLY=gpu`"
    )
