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
    head = "**Claims**\n\n| Claim | Measured |\n| --- | --- |\n"
    note = "Rows that wait for runs are left out (1)."
    judged = "| Ahead. | held (5 of 5 runs) |"
    lacking = "| Faster. | not enough runs (4 of 5 runs) |"
    assert reproduction.with_runs(f"{head}{lacking}") == ""
    assert reproduction.with_runs(f"{head}{judged}\n{lacking}") == f"{head}{judged}\n\n{note}"
