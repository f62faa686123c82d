"""Job logs end with what went wrong, and a progress bar is for terminals."""

import io
import os
import sys
from pathlib import Path

import pytest

from cohort.core.errors import UserError
from cohort.core.process import last_line, last_session, log_output, tracked
from cohort.core.text import duration_text

FULL = "the disk is full; make room and start again"


@pytest.mark.parametrize(
    ("error", "line", "traced"),
    [
        (UserError("the disk is full"), "error: the disk is full", False),
        (KeyError("lr"), "error: KeyError('lr')", True),
        (KeyboardInterrupt(), "error: stopped before it was done; start again", False),
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
    for message in ("first", "second --- third"):
        with log_output(log):
            print(message, file=sys.stderr)
    lines = log.read_text().splitlines()
    assert lines[1::2] == ["first", "second --- third"] and lines[2].startswith("--- ")
    assert last_session(log).splitlines() == lines[2:]
    assert last_line(tmp_path / "none.log") == last_session(tmp_path / "none.log") == ""


@pytest.mark.parametrize("lost", ["", "results/a.h5"])
def test_a_disk_that_fills_during_a_job(tmp_path: Path, lost: str):
    """The job's own failed write is reported rather than the log's."""
    log = tmp_path / "cell.log"
    with pytest.raises(SystemExit) as caught, log_output(log):
        print("round 1")
        with open("/dev/full", "w") as full:
            os.dup2(full.fileno(), sys.stdout.fileno())
        if lost:
            raise UserError(f"{lost}: {FULL}")
        print("round 2")
    assert str(caught.value.code) == f"error: {lost or log}: {FULL} (log: {log})"
    assert log.read_text().endswith("round 1\n")


def test_a_log_that_may_not_be_written_is_one_sentence(tmp_path: Path):
    full, logs = tmp_path / "full.log", tmp_path / "logs"
    full.symlink_to("/dev/full")
    logs.write_text("a file")
    for log, sentence in (
        (full, f"{full}: {FULL}"),
        (logs / "cell.log", f"{logs}: a file stands where a folder is needed"),
    ):
        with pytest.raises(SystemExit) as caught, log_output(log):
            raise UserError("what the log cannot hold")
        assert str(caught.value.code).startswith(f"error: {sentence}")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("output", [io.StringIO(), Terminal()], ids=["pipe", "terminal"])
def test_a_bar_in_a_terminal_only(output: io.StringIO, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", output)
    assert list(tracked(map(str, range(3)), "counting", 3)) == ["0", "1", "2"]
    assert ("counting" in output.getvalue() and "100%" in output.getvalue()) == output.isatty()
    assert output.isatty() or output.getvalue() == ""


def test_durations_carry_over_when_rounded():
    texts = [duration_text(seconds) for seconds in (0.4, 59.6, 307, 3599.7, 3900, 7.776e6)]
    assert texts == ["0 s", "1 min 00 s", "5 min 07 s", "1 h 00 min", "1 h 05 min", "2,160 h"]
