"""docs/showdown.md says what the released runs say."""

from __future__ import annotations

import pytest

from tools import showdown


@pytest.mark.slow
def test_the_page_is_current() -> None:
    text = showdown.PAGE.read_text(encoding="utf-8")
    assert showdown.update(text) == text, "run `python -m tools.showdown`"
