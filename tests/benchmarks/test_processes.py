"""Worker processes and one-shot commands: rounds, results, memory and failures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import peers
from benchmarks.processes import Command, Failed, Workers

LIVE = """
import numpy, sys, time
from benchmarks.protocol import serve
rounds, kept = [], []
def step():
    print("not a reply")
    rounds.append(1); kept.append(bytearray(int(sys.argv[1]))); time.sleep(0.3)
    if len(rounds) == int(sys.argv[2]): sys.exit("enough")
serve(step, lambda: numpy.array(rounds, dtype=float))
"""
MEGABYTE = 10**6


def live(folder: Path, megabytes: int = 0, dies: int = 0, processes: int = 1) -> Workers:
    command = [sys.executable, "-c", LIVE, str(megabytes * MEGABYTE), str(dies)]
    return Workers([command] * processes, peers.environment(), folder / "log")


def test_rounds_and_their_result(tmp_path: Path):
    with live(tmp_path) as variant:
        assert 0.3 <= variant.run() < 3
        variant.run()
        assert np.array_equal(variant.answer(tmp_path / "answer.npy"), [1.0, 1.0])
    assert [process.returncode for process in variant.processes] == [0]
    assert "not a reply" in (tmp_path / "log").read_text()


def test_two_processes_run_two_rounds_at_once(tmp_path: Path):
    with live(tmp_path, processes=2) as variant:
        assert 0.15 <= variant.run() < 0.28


def test_memory_of_a_round(tmp_path: Path):
    """A process that allocates another 60 MB in each round."""
    with live(tmp_path, megabytes=60) as variant:
        first = variant.peak_mb()
        second = variant.peak_mb()
    assert 50 < second - first < 75 and first > 60


def test_a_process_that_dies(tmp_path: Path):
    with live(tmp_path, dies=2) as variant:
        variant.run()
        with pytest.raises(Failed, match="enough"):
            variant.run()


def test_a_process_that_cannot_start(tmp_path: Path):
    with (
        pytest.raises(Failed, match="ZeroDivisionError"),
        Workers([[sys.executable, "-c", "1 / 0"]], os.environ, tmp_path / "log"),
    ):
        pass


def test_a_command_runs_once_per_round(tmp_path: Path):
    made = []
    command = Command(
        [sys.executable, "-c", "kept = 1"], os.environ, tmp_path, before=lambda: made.append(1)
    )
    assert command.run() > 0.001 and made == [1]
    with pytest.raises(Failed, match="no luck"):
        Command([sys.executable, "-c", "raise SystemExit('no luck')"], os.environ, tmp_path).run()


def test_memory_of_a_command(tmp_path: Path):
    """Measured from a small process, as Linux counts the parent's memory at fork."""
    code = """
import os, sys
from pathlib import Path
from benchmarks.processes import Command
command = Command([sys.executable, "-c", "kept = bytearray(200_000_000)"], os.environ, Path())
command.run()
print(command.peak_mb)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=peers.environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert 200 < float(done.stdout) < 240
