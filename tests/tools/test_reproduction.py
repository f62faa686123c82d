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
