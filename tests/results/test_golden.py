"""Tables and verdicts from invented runs, as they were: what changes them is looked at."""

from __future__ import annotations

import pytest

from tools.invented import FOLDER, STUDIES, page


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_tables_and_verdicts(study: str) -> None:
    golden = (FOLDER / f"{study}.md").read_text(encoding="utf-8")
    assert page(study).splitlines() == golden.splitlines(), (
        "python -m tools.invented writes the pages anew: read what git diff shows"
    )
