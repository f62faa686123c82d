from __future__ import annotations

import pytest

from cohort.core.text import duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.6, "1 min 00 s"),
        (307, "5 min 07 s"),
        (3599.7, "1 h 00 min"),
        (3900, "1 h 05 min"),
        (7.776e6, "2,160 h"),
    ],
)
def test_durations_carry_over_when_rounded(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
