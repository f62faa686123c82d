"""The progress bar of a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from cohort.core.process import tracked


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
