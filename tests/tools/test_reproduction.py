"""The pages of docs/reproduction are those of the released runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cohort.core.paths import RELEASED
from tools import reproduction

PAGES = [
    pytest.param(page, id=page.stem, marks=pytest.mark.long if page.stem == "fedentopt" else ())
    for page in sorted(reproduction.PAGES.glob("*.md"))
    if (reproduction.ROOT / RELEASED / page.stem).exists()
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_current(page: Path):
    text = page.read_text(encoding="utf-8")
    command = f"python -m tools.reproduction {page.stem}"
    assert reproduction.update(text, page.stem) == text, f"run `{command}`"


def test_rows_that_wait_for_runs_are_left_out() -> None:
    head = "**Claims**\n\n| Claim | Measured |\n| --- | --- |\n"
    note = "Rows that wait for runs are left out (1)."
    judged = "| Ahead. | held (5 of 5 runs) |"
    lacking = "| Faster. | not enough runs (4 of 5 runs) |"
    printed = "| Dir(0.1) | paper 46.61 \N{PLUS-MINUS SIGN} 0.17 | paper 44.84 |"
    ours = "| C = 2 | 52.14 (n = 4 of 5)<br>paper 51.58 (+0.56) | paper 51.68 |"
    assert reproduction.rows_with_runs(f"{head}{lacking}\n{printed}") == ""
    assert reproduction.rows_with_runs(f"{head}{ours}\n{printed}") == f"{head}{ours}\n\n{note}"
    assert reproduction.rows_with_runs(f"{head}{judged}\n{lacking}") == f"{head}{judged}\n\n{note}"
