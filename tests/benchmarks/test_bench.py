"""`python -m benchmarks`: the table of a workload, and its place on the page."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import training, work
from benchmarks.contest import FLOWER, OURS, OURS_PER_MACHINE, PLAIN, Outcome
from benchmarks.tables import number, put_section, table
from benchmarks.workloads import W1, Workload


def test_the_table_of_a_workload(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """Ten clients of four steps; differences of 3 in 100,000 and of 3 in 1000."""
    outcome = Outcome(
        seconds={OURS.title: [2.0, 2.0], PLAIN.title: [4.0, 8.0], FLOWER.title: [6.0, 6.0]},
        peak_mb={OURS.title: 900.0},
        answers={
            PLAIN.title: np.array([1000.0, 1]),
            OURS.title: np.array([1000.0, 1.03]),
            FLOWER.title: np.array([1000.0, 4]),
        },
        failed={OURS_PER_MACHINE.title: "no memory"},
    )
    monkeypatch.setattr(training, "contest", lambda entries, folder, rounds: outcome)
    monkeypatch.setattr(training, "ALL", (OURS_PER_MACHINE, OURS, PLAIN, FLOWER))
    monkeypatch.setattr(work, "draw", lambda workload, folder: None)
    monkeypatch.setattr(work, "read_work", lambda folder: work.Work(W1, *[np.zeros(1)] * 2, {}, *[np.zeros(1)] * 2))  # fmt: skip
    section = training.measure(W1, tmp_path)
    titles, _, failed, ours, plain, flower = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in section.text[1].splitlines()
    )
    assert titles[4:] == ["clients/s", "steps/s", "vs plain", "vs Flower", "memory, MB", "difference"]  # fmt: skip
    assert ours == ["ours, one process", "2.00", "2.00", "2.00 to 2.00", "5.00", "20.0", "3.00", "3.00", "900", "3.0e-05"]  # fmt: skip
    assert failed[1:] == ["failed", *"-" * 8] and plain[-1] == "-" and flower[-1] == "0.00300"
    assert section.failures == [
        f"{OURS_PER_MACHINE.title}: failed, no memory",
        "Flower: its result differs from that of 'plain loop' by 0.00300",
    ]


def test_replacing_a_section_keeps_the_rest_of_the_page():
    text = put_section("# Title\n\nBefore.\n", "W1", "one\n")
    text = put_section(text + "\nBetween.\n", "W2", "two\n")
    again = put_section(text, "W1", "three\n")
    assert again == text.replace("one", "three") and "Before." in again and "Between." in again
    with pytest.raises(ValueError, match="end of W1"):
        put_section(text.replace("<!-- end of W1 -->", ""), "W1", "four")


def test_numbers_and_tables():
    values = (0.0, 0.04567, 1.0, 12.345, 99.96, 1234.5, 4.2e-8, None)
    printed = ["0.00", "0.0457", "1.00", "12.3", "100", "1234", "4.2e-08", "-"]
    assert [number(value) for value in values] == printed
    assert table(["a", "long"], [["xyz", "1"]]).splitlines()[1:] == [
        "|-----|------|",
        "| xyz | 1    |",
    ]


def test_batches_by_hand():
    load = Workload("w", "", "lenet5", (1, 8, 8), 2, "J4", size=5, batch=2)
    orders = np.array([[4, 3, 2, 1, 0], [0, 1, 2, 3, 4]])
    assert load.epochs == 2
    assert [batch.tolist() for batch in load.batches(orders)] == [[4, 3], [2, 1], [0], [0, 1]]
