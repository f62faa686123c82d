"""Comparing two trees, on fake trees whose rounds take a known time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks import against
from benchmarks.against import Comparison, Trees, compare_rounds
from benchmarks.contest import Entry
from benchmarks.peers import ROOT
from benchmarks.processes import Failed, times_faster
from benchmarks.workloads import W3

VARIANT = """
import time
import numpy
from benchmarks.protocol import serve
kept = bytearray({megabytes} * 10**6)
serve(lambda: time.sleep({seconds}), lambda: numpy.array([{answer}]))
"""
ENTRIES = (Entry("ours", "ours"),)


def fake_tree(folder: Path, seconds: float, megabytes: int = 0, answer: float = 1.0) -> Path:
    """A tree with nothing in it but a variant that sleeps for each round."""
    variants = folder / "benchmarks" / "variants"
    variants.mkdir(parents=True)
    shutil.copy(ROOT / "benchmarks/protocol.py", folder / "benchmarks")
    code = VARIANT.format(seconds=seconds, megabytes=megabytes, answer=answer)
    (variants / "ours.py").write_text(code)
    return folder


@pytest.mark.slow
@pytest.mark.alone
def test_each_side_runs_its_own_tree(tmp_path: Path):
    trees = Trees(fake_tree(tmp_path / "old", 0.05), fake_tree(tmp_path / "new", 0.1, 100))
    time, memory = compare_rounds(W3.tiny(), ENTRIES, 2, trees, tmp_path / "work")
    assert 1.7 < times_faster(time.new, time.old) < 2.3 and time.worse
    assert len(time.old) == len(time.new) == 2 * against.PASSES
    assert 70 < memory.new[0] - memory.old[0] < 130 and memory.worse
    back = compare_rounds(W3.tiny(), ENTRIES, 1, Trees(*reversed(trees)), tmp_path / "again")
    assert not any(comparison.worse for comparison in back)


@pytest.mark.long
def test_trees_with_different_weights_cannot_be_compared(tmp_path: Path):
    old, new = (fake_tree(tmp_path / name, 0, answer=len(name)) for name in ("old", "newer"))
    with pytest.raises(Failed, match=r"old: ours and new: ours differ by 0\.667"):
        compare_rounds(W3.tiny(), ENTRIES, 1, Trees(old, new), tmp_path / "work")


def test_the_ratio_is_the_median_over_pairs():
    """Paired ratios of 1.00, 1.03, 1.04 pass the limit of 3 %, those of 1.04, 1.04, 1.00 do not."""
    close = Comparison("W1", "s/round", [1.0, 4.0, 1.0], [1.0, 4.12, 1.04])
    far = Comparison("W1", "s/round", [1.0, 4.0, 1.0], [1.04, 4.16, 1.0])
    assert not close.worse and close.row()[4:] == ["1.030", "1.015 to 1.035", "3", "ok"]
    assert far.worse and far.row()[-1] == "**worse by more than 3%**"


@pytest.mark.slow
@pytest.mark.alone
def test_the_working_tree_against_its_last_commit(capsys: pytest.CaptureFixture[str]):
    against.main(["HEAD", "W5", "--tiny"])
    printed = capsys.readouterr()
    assert printed.out.count("\n| W5 ") == 2
    assert "Old: " in printed.out and "failed" not in printed.err
