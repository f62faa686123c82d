"""What a signal leaves to the round in hand."""

from __future__ import annotations

import os
import signal
import time

import pytest

from cohort.core.errors import UserError
from cohort.training.job import run


def test_a_round_that_goes_on_after_a_signal_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run, "PATIENCE_SECONDS", 1)
    begun = time.monotonic()
    with (
        pytest.raises(UserError, match="in the middle of a round, by signal SIGTERM"),
        run._stop_signals(),
    ):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(20)
    assert time.monotonic() - begun < 10


def test_a_round_that_ends_in_time_leaves_no_alarm(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run, "PATIENCE_SECONDS", 1)
    before = signal.getsignal(signal.SIGALRM)
    with run._stop_signals() as caught:
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught == [signal.SIGTERM] and signal.getsignal(signal.SIGALRM) == before
    assert signal.alarm(0) == 0
