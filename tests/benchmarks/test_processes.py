"""Worker processes and one-shot commands: rounds, results, memory, failures; interleaved times."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import peers
from benchmarks.processes import Command, Failed, Workers, times_faster

LIVE = """
import numpy, sys, time
from benchmarks.protocol import serve
rounds, kept = [], []
def step():
    print("not a reply")
    rounds.append(1); kept.append(bytearray(int(sys.argv[1]))); time.sleep(0.3)
serve(step, lambda: numpy.array(rounds, dtype=float))
"""
MEGABYTE = 10**6


def live(folder: Path, megabytes: int = 0, processes: int = 1) -> Workers:
    command = [sys.executable, "-c", LIVE, str(megabytes * MEGABYTE)]
    return Workers([command] * processes, peers.environment(), folder / "log")


def test_rounds_and_their_result(tmp_path: Path):
    with live(tmp_path) as variant:
        assert 0.3 <= variant.run() < 3
        variant.run()
        assert np.array_equal(variant.answer(tmp_path / "answer.npy"), [1.0, 1.0])
    assert [process.returncode for process in variant.processes] == [0]
    assert "not a reply" in (tmp_path / "log").read_text()


def test_memory_of_a_round(tmp_path: Path):
    """A process that allocates another 60 MB in each round."""
    with live(tmp_path, megabytes=60) as variant:
        first = variant.peak_mb()
        second = variant.peak_mb()
    assert 50 < second - first < 75 and first > 60


def test_a_command_runs_once_per_round(tmp_path: Path):
    calls = []
    command = Command(
        [sys.executable, "-c", "kept = 1"], os.environ, tmp_path, before=lambda: calls.append(1)
    )
    assert command.run() > 0.001 and calls == [1] and command.peak_mb > 1
    with pytest.raises(Failed, match="no luck"):
        Command([sys.executable, "-c", "raise SystemExit('no luck')"], os.environ, tmp_path).run()


def test_speedup_is_the_median_ratio_within_sweeps():
    """The ratios 2, 4 and 1.5 have median 2, while the ratio of the medians is 9 / 6."""
    assert times_faster([2.0, 40.0, 9.0], [1.0, 10.0, 6.0]) == 2.0
