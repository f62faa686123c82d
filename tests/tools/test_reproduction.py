"""The pages of docs/reproduction are those of the released runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import reproduction


@pytest.mark.parametrize(
    "page", sorted(reproduction.PAGES.glob("*.md")), ids=lambda page: page.stem
)
def test_a_page_is_current(page: Path):
    text = page.read_text(encoding="utf-8")
    command = f"python -m tools.reproduction {page.stem}"
    assert reproduction.update(text, page.stem) == text, f"run `{command}`"


def test_rows_that_wait_for_runs_are_left_out() -> None:
    head = "**Table I**\n\n| Strategy | Measured |\n| --- | ---: |\n"
    waiting = "| FedProx | no result yet (n = 0 of 5) |"
    assert reproduction.rows_with_runs(f"{head}{waiting}") == ""
    row = "| FedAvg | 46.64 (n = 3 of 5) |"
    note = "Rows that wait for runs are left out (1)."
    assert reproduction.rows_with_runs(f"{head}{row}\n{waiting}") == f"{head}{row}\n\n{note}"
    judged = "| Ahead. | held (5 of 5 runs) |"
    lacking = "| Faster. | not enough runs (4 of 5 runs) |"
    assert reproduction.rows_with_runs(f"{head}{judged}\n{lacking}") == f"{head}{judged}\n\n{note}"
