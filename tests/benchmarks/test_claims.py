"""The simulation of claims: false verdicts, and the table on the page."""

from __future__ import annotations

import pytest

from benchmarks.claims import CASES, EFFECTS, PAGE, SEEDS, Case, share_held


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_claims_at_the_limit_are_seldom_held_and_clear_ones_often(case: Case) -> None:
    """Of 200 studies, 5 % are 10; a true rate of 2.5 % gives more than 14 less than once in 2,000 times."""
    assert share_held(case, 0.0, 3, 200) <= 14 / 200
    assert share_held(case, 4.0, 5, 20) > 0.9


def test_the_page_shows_at_most_five_percent_of_false_verdicts() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.endswith("% |")]
    shares = [[float(cell.strip(" %")) for cell in line.split("|")[3:-1]] for line in rows]
    assert len(rows) == len(CASES) * len(SEEDS)
    assert all(len(row) == 1 + len(EFFECTS) and row[0] <= 5 for row in shares)
