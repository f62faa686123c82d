"""What a signal does to the current round."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cohort.core.errors import UserError
from cohort.training.evaluation import fingerprint
from cohort.training.job import checkpoint
from cohort.training.job import train as job
from cohort.training.job.train import GivenUp, Run
from cohort.training.rounds import Rounds
from cohort.training.trainers.serial import PlainSGD
from tests.training.small_task import run as run_of
from tests.training.small_task import small_task

CPU, DIGEST = torch.device("cpu"), "k0"
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The handlers of this process, which a run that a signal stopped leaves replaced."""
    monkeypatch.setattr(job, "PATIENCE_SECONDS", 1)
    before = [signal.getsignal(number) for number in NUMBERS]
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
    yield [*before[:3], signal.SIG_DFL]
    for number, handler in zip(NUMBERS, before, strict=True):
        signal.signal(number, handler)


def task_of():
    return replace(small_task(rounds=3, J="J2e", batch=2, momentum=0.9), digest=DIGEST)


def run_at(path: Path) -> Run:
    """A run from its checkpoint, or from the beginning, without a plan file."""
    task = task_of()
    begun = task.procedure.begin(task)
    state, cursor = checkpoint.load(path, DIGEST, begun, CPU) or (begun, {})
    return Run(task.procedure.rounds_of(task), state, cursor, path)


def test_signals_are_collected_and_the_alarm_ends_with_the_block(handlers: list[object]):
    with job._stop_signals([]):
        assert signal.getsignal(signal.SIGHUP) == signal.getsignal(signal.SIGINT)
    assert [signal.getsignal(number) for number in NUMBERS] == handlers
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with job._stop_signals([]):
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # as under nohup
    caught: list[int] = []
    with job._stop_signals(caught):
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught == [signal.SIGTERM] and signal.alarm(0) == 0
    os.kill(os.getpid(), signal.SIGINT)  # changes nothing: the process is ending
    assert signal.getsignal(signal.SIGALRM) == handlers[2]


def test_a_second_signal_leaves_no_more_time():
    begun = time.monotonic()
    with pytest.raises(GivenUp), job._stop_signals([]):
        for _ in range(20):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.5)
    assert 0.5 < time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("owner", "method", "call", "seconds", "left"),
    [
        # the first step of round 2: its client is done, then the run stops
        (PlainSGD, "step", 23, 0, 1),
        (PlainSGD, "step", 23, 20, 0),  # given up before the first client is done
        (Rounds, "evaluate", 2, 20, 4),  # a long evaluation, after all clients
    ],
)
def test_a_signal_inside_a_round_keeps_the_clients_that_are_done(
    owner: type, method: str, call: int, seconds: int, left: int, tmp_path: Path, monkeypatch
):
    path, calls, original = tmp_path / "checkpoint", [], getattr(owner, method)

    def counted(self, *arguments):
        calls.append(None)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(seconds)
        return original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(owner, method, counted)
        sentence = r"stopped inside round 2: round 1/3.* by signal SIGTERM"
        with pytest.raises(UserError, match=sentence):
            run_at(path).train(3600, 3, lambda state: None)
    assert signal.alarm(0) == 0
    resumed = run_at(path)
    assert resumed.state.round == 1
    assert len(resumed.cursor.get("work0/finished/steps", ())) == left
    resumed.train(3600, 3, lambda state: None)
    whole = run_of(task_of())
    assert fingerprint(resumed.state.weights) == fingerprint(whole.weights)
    assert resumed.state.history.metrics == whole.history.metrics


def test_checkpoints_are_written_when_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With no seconds between checkpoints: after each client and each round."""
    saved, save = [], checkpoint.save

    def noted(path, state, digest, cursor=None):
        saved.append((state.round, bool(cursor)))
        save(path, state, digest, cursor)

    monkeypatch.setattr(checkpoint, "save", noted)
    actual = run_at(tmp_path / "checkpoint")
    actual.train(0, 3, lambda state: None)
    assert saved == [(round + index // 4, index < 4) for round in range(3) for index in range(5)]
    assert fingerprint(actual.state.weights) == fingerprint(run_of(task_of()).weights)
