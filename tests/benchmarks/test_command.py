"""`python -m benchmarks` end to end on a few small rounds."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import contest as contests
from benchmarks import machine, page, peers, profile, training
from benchmarks.contest import FLOWER, OURS, PLAIN, RATES, Outcome
from benchmarks.picture import Curve, Panel, draw
from benchmarks.results import Results
from benchmarks.tables import Section
from benchmarks.training import goals
from benchmarks.workloads import W1, W2, W3, Workload
from tests.conftest import ROOT


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sweep is counted, and the peak is measured by one process for each operation."""
    tiny = Workload.tiny
    monkeypatch.setattr(Workload, "tiny", lambda workload: replace(tiny(workload), rounds=1))
    for style, entry in RATES.items():
        monkeypatch.setitem(RATES, style, replace(entry, processes=1))


@pytest.mark.long
def test_a_peer_that_is_not_installed_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(contests, "python_of", lambda peer: None)
    monkeypatch.setattr(training, "ALL", (OURS, PLAIN, FLOWER))  # the least that has all columns
    for style in list(RATES):
        monkeypatch.delitem(RATES, style)
    before = command.PAGE.read_bytes()
    assert command.main(["W1", "--tiny"]) == 0
    printed, log = capsys.readouterr()
    assert re.search(r"\| Flower +\| not installed ", printed)
    assert "Flower: not installed, left out (make bench-peers)" in log
    assert "not measured" in printed and "| ours, one process " in printed
    assert command.PAGE.read_bytes() == before


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("estimates", "| small MLP on digits "),
        pytest.param("W5", "| ≤ 1.2 ", marks=pytest.mark.long),
    ],
)
def test_parts_without_peers_succeed(part: str, says: str, capsys: pytest.CaptureFixture[str]):
    assert command.main([part, "--tiny"]) == 0
    assert says in capsys.readouterr().out


@pytest.mark.long
def test_where_a_round_goes(tmp_path: Path):
    assert "| W3, One sample per step " in profile.measure([W3.tiny()], tmp_path).markdown()


def test_an_unknown_part(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        command.main(["W9"])
    assert (
        "there is no part W9; choose from W1, W2, W2a, W2b, W3, W4, W5, W6"
        in capsys.readouterr().err
    )


def test_processors_without_avx512_have_sections_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "performance.md"
    monkeypatch.setattr(command, "PAGE", file)
    monkeypatch.setattr(command, "RESULTS", tmp_path / "gpu.json")
    monkeypatch.setattr(command.readme, "write_readme", lambda: None)
    monkeypatch.setattr(command, "parts", lambda tiny: {"W2": lambda folder: Section("W2: LeNet")})
    for has_avx512 in (True, False):
        for module in (command, machine):
            monkeypatch.setattr(module, "has_avx512", lambda answer=has_avx512: answer)
        assert command.main(["W2"]) == 0
    with_it, without = file.read_text().split("<!-- W2 without AVX-512: ")
    assert "\n## W2: LeNet\n" in with_it and " with AVX-512, " in with_it
    assert "\n## W2: LeNet without AVX-512\n" in without and " without AVX-512, " in without


def test_different_weights_are_a_failure():
    """A difference of 3 in 1000, and one of 3 in 100,000."""
    seconds = {entry.title: [1.0, 2.0] for entry in (PLAIN, OURS, FLOWER)}
    answers = {
        PLAIN.title: np.array([1000.0, 1]),
        OURS.title: np.array([1000.0, 1.03]),
        FLOWER.title: np.array([1000.0, 4]),
    }
    results = Results(
        Outcome(seconds, answers=answers), (PLAIN, OURS, FLOWER), {"vs plain": PLAIN}, 10
    )
    assert results.differences == pytest.approx({OURS.title: 3e-5, FLOWER.title: 3e-3})
    assert results.problems() == ["Flower: its result differs from that of 'plain loop' by 0.00300"]
    answers[OURS.title] = np.array([np.nan, 1])
    results = Results(Outcome(seconds, answers=answers), (PLAIN, OURS), {"vs plain": PLAIN}, 10)
    assert len(results.problems()) == 2


def test_share_of_the_peak():
    """30 GFLOP in 2 s; peak: three matrix products of 17.2 GFLOP each in 1 s per core."""
    seconds = {PLAIN.title: [2.0], "product": [1.0]}
    results = Results(Outcome(seconds), (PLAIN,), {"vs plain": PLAIN}, int(30e9))
    (row,) = results.table().splitlines()[2:]
    assert f"| {100 * 15e9 / (3 * 2 * 2048**3):.0f}% " in row


def test_throughputs_and_their_place_in_the_row_of_a_missing_peer():
    """Ten clients of 40 steps take 4 s, the median of 2, 4 and 5 s."""
    results = Results(
        Outcome({PLAIN.title: [4.0, 2.0, 5.0]}, missing=[FLOWER.title]),
        (PLAIN, FLOWER),
        {"vs plain": PLAIN},
        10,
        throughputs={"clients/s": 10, "steps/s": 400},
    )
    titles, _, plain, flower = (line.split("|") for line in results.table().splitlines())
    cells = dict(zip(titles, plain, strict=True))
    assert float(cells[" clients/s "]) == 2.5 and float(cells[" steps/s "]) == 100
    assert len(flower) == len(titles) and flower[2].strip() == "not installed"


def test_goals_by_hand():
    ours = f"ours, {contests.cores()} processes"
    seconds = {
        ours: [1.0, 1.0],
        "Flower": [5.0, 5.0],
        "pfl": [7.5, 7.5],
    }
    outcome = Outcome(seconds, peak_mb={ours: 900.0, "Flower": 600.0})
    assert [(goal.measured, goal.verdict) for goal in goals(W1, outcome)] == [(5.0, "reached")]
    assert [(goal.measured, goal.verdict) for goal in goals(W2, outcome)] == [
        (5.0, "not reached"),
        (7.5, "reached"),
        (1.5, "not reached"),
    ]
    assert [goal.verdict for goal in goals(W3, outcome)] == ["not measured"]


def test_replacing_a_section_keeps_the_rest_of_the_page(tmp_path: Path):
    text = page.put_section("# Title\n\nBefore.\n", "W1", "one\n")
    text = page.put_section(text + "\nBetween.\n", "W2", "two\n")
    again = page.put_section(text, "W1", "three\n")
    assert again == text.replace("one", "three") and "Before." in again and "Between." in again
    with pytest.raises(ValueError, match="end of W1"):
        page.put_section(text.replace("<!-- end of W1 -->", ""), "W1", "four")


def test_the_page_has_a_place_for_every_part():
    text = command.PAGE.read_text()
    for name in command.parts(tiny=False):
        marker = f"<!-- {name}: made by"
        assert page.put_section(text, name, "x").count(marker) == text.count(marker) == 1


def test_every_peer_is_pinned_and_has_a_make_target():
    makefile = (ROOT / "Makefile").read_text()
    for peer in peers.PEERS:
        lines = (ROOT / f"benchmarks/peers/{peer}.txt").read_text().split()
        assert lines and all("==" in line for line in lines)
        assert f"benchmarks/.environments/{peer}/ready" in makefile
    assert peers.pins("blazefl") == "blazefl 2.0.3"
    assert peers.pins("flower") == "flwr 1.41.0, ray 2.55.1"


def test_without_python_3_12_blazefl_is_left_out(tmp_path: Path):
    """No Python is on the PATH, and the other peers are taken for installed."""
    folder = "benchmarks/.environments"
    others = [f"--old-file={folder}/{peer}/ready" for peer in peers.PEERS if peer != "blazefl"]
    make = [shutil.which("make"), "bench-peers", "PYTHON=python3", *others]
    done = subprocess.run(make, cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert b"left out, as it needs Python 3.12 or newer" in done.stdout


def test_a_half_installed_environment_does_not_count(tmp_path: Path):
    (tmp_path / "pfl/bin").mkdir(parents=True)
    assert peers.python_of("pfl", tmp_path) is None
    (tmp_path / "pfl/ready").touch()
    assert peers.python_of("pfl", tmp_path) == tmp_path / "pfl/bin/python"


def test_draw_the_scaling_figure(tmp_path: Path):
    draw(
        [
            Panel("x", "y", [Curve("one", [(1, 2), (10, 20)]), Curve("none", [])]),
            Panel("x", "y", []),
        ],
        tmp_path / "growth.png",
    )
    assert (tmp_path / "growth.png").stat().st_size > 1000
