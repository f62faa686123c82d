"""Job logs end with what went wrong."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cohort.core.errors import UserError
from cohort.core.process import last_line, last_session, log_output


@pytest.mark.parametrize(
    ("error", "line", "traced"),
    [
        (UserError("the disk is full"), "error: the disk is full", False),
        (KeyError("lr"), "error: KeyError('lr')", True),
        (KeyboardInterrupt(), "error: KeyboardInterrupt()", False),
    ],
)
def test_last_line_says_what_happened(
    tmp_path: Path, error: BaseException, line: str, traced: bool
):
    log = tmp_path / "logs" / "cell.log"
    with pytest.raises(SystemExit) as caught, log_output(log):
        print("round 1")
        raise error
    assert str(caught.value.code) == f"{line} (log: {log})"
    text = log.read_text()
    assert last_line(log) == line and "round 1" in text and ("Traceback" in text) == traced


def test_a_log_is_appended_to_and_takes_both_streams(tmp_path: Path):
    log = tmp_path / "cell.log"
    for word in ("first", "second"):
        with log_output(log):
            print(word, file=sys.stderr)
    assert [line for line in log.read_text().splitlines() if not line.startswith("---")] == [
        "first",
        "second",
    ]
    assert last_line(tmp_path / "none.log") == ""


def test_a_full_disk_is_one_sentence_although_the_log_cannot_hold_it(tmp_path: Path):
    log = tmp_path / "cell.log"
    log.symlink_to("/dev/full")
    with pytest.raises(SystemExit) as caught, log_output(log):
        raise UserError("results/a.h5: the disk is full; make room and start again")
    assert str(caught.value.code).startswith(
        f"error: {log}: the disk is full; make room and start again"
    )


@pytest.mark.parametrize("lost", ["", "results/a.h5"])
def test_a_disk_that_fills_during_a_job(tmp_path: Path, lost: str):
    """The job's own failed write is reported rather than the log's."""
    log = tmp_path / "cell.log"
    with pytest.raises(SystemExit) as caught, log_output(log):
        print("round 1")
        with open("/dev/full", "w") as full:
            os.dup2(full.fileno(), sys.stdout.fileno())
        if lost:
            raise UserError(f"{lost}: the disk is full; make room and start again")
        print("round 2")
    assert (
        str(caught.value.code)
        == f"error: {lost or log}: the disk is full; make room and start again (log: {log})"
    )
    assert log.read_text().endswith("round 1\n")


def test_a_log_that_may_not_be_written_is_one_sentence(tmp_path: Path):
    (tmp_path / "logs").write_text("a file")
    with pytest.raises(SystemExit) as caught, log_output(tmp_path / "logs" / "cell.log"):
        raise AssertionError("the job does not begin")
    assert (
        str(caught.value.code)
        == f"error: {tmp_path / 'logs'}: a file stands where a folder is needed; move it away and start again"
    )


def test_the_last_session_begins_at_the_start_of_a_line(tmp_path: Path):
    log = tmp_path / "cell.log"
    log.write_text("--- first\nround 1\n--- second\nround 2 --- of 9\n")
    assert last_session(log) == "--- second\nround 2 --- of 9\n"
