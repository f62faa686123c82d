"""What a job's log ends with when something goes wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cohort.errors import UserError
from cohort.log import last_line, logged


@pytest.mark.parametrize(
    ("error", "line", "traced"),
    [
        (UserError("the disk is full"), "error: the disk is full", False),
        (KeyError("lr"), "error: KeyError('lr')", True),
        (KeyboardInterrupt(), "error: KeyboardInterrupt()", False),
    ],
)
def test_last_line_says_what_happened(tmp_path: Path, error: BaseException, line: str, traced: bool):
    log = tmp_path / "logs" / "cell.log"
    with pytest.raises(SystemExit) as caught, logged(log):
        print("round 1")
        raise error
    assert str(caught.value.code) == f"{line} (log: {log})"
    text = log.read_text()
    assert last_line(log) == line and "round 1" in text and ("Traceback" in text) == traced


def test_a_log_is_added_to_and_takes_both_streams(tmp_path: Path):
    log = tmp_path / "cell.log"
    for word in ("first", "second"):
        with logged(log):
            print(word, file=sys.stderr)
    assert [line for line in log.read_text().splitlines() if not line.startswith("---")] == ["first", "second"]
    assert last_line(tmp_path / "none.log") == ""
