"""What a signal does to the current round."""

from __future__ import annotations

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
from cohort.training.evaluators import OnTest
from cohort.training.job import checkpoint
from cohort.training.job import train as job
from cohort.training.job.train import GivenUp, Run
from cohort.training.trainers.serial import SerialTrainer
from tests.training.small_task import run as run_of
from tests.training.small_task import small_task

CPU, DIGEST = torch.device("cpu"), "k0"


def test_a_round_that_reaches_no_place_after_a_signal_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job, "PATIENCE_SECONDS", 1)
    begun = time.monotonic()
    with pytest.raises(GivenUp), job._stop_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(20)
    assert 0.5 < time.monotonic() - begun < 10


NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[list[object]]:
    """The handlers of this process, which a run that a signal stopped leaves replaced."""
    before = [signal.getsignal(number) for number in NUMBERS]
    yield before
    for number, handler in zip(NUMBERS, before, strict=True):
        signal.signal(number, handler)


def test_a_round_that_ends_in_time_leaves_no_alarm(
    monkeypatch: pytest.MonkeyPatch, handlers: list[object]
):
    monkeypatch.setattr(job, "PATIENCE_SECONDS", 1)
    with job._stop_signals() as caught:
        pass
    assert [signal.getsignal(number) for number in NUMBERS] == handlers
    with job._stop_signals() as caught:
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGALRM) == handlers[2]
    assert signal.alarm(0) == 0


def test_a_second_signal_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    """Neither the seconds that are left nor the end of the process."""
    monkeypatch.setattr(job, "PATIENCE_SECONDS", 1)
    begun = time.monotonic()
    with pytest.raises(GivenUp), job._stop_signals():
        for _ in range(20):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.5)
    assert time.monotonic() - begun < 5
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)
    assert signal.alarm(0) == 0


def task_of(rounds: int = 3):
    return replace(small_task(rounds=rounds, J="J2e", batch=2, momentum=0.9), digest=DIGEST)


def run_at(path: Path) -> Run:
    """A run from its checkpoint, or from the beginning, without a plan file."""
    task = task_of()
    begun = task.procedure.begin(task)
    state, cursor = checkpoint.load(path, DIGEST, begun, CPU) or (begun, {})
    return Run(task, task.procedure.rounds_of(task), CPU, state, cursor, path)


def trained(path: Path) -> Run:
    actual = run_at(path)
    actual.train(3600, 3, lambda state: None)
    return actual


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_local_training_saves_the_place(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The 30th step of 42 is in round 2. The resumed run ends with the same weights, and takes only
    the steps that are left."""
    path, steps = tmp_path / "checkpoint", []
    original = SerialTrainer._backward

    def counted(self, *arguments):
        steps.append(None)
        if len(steps) == 30:
            os.kill(os.getpid(), number)
        return original(self, *arguments)

    monkeypatch.setattr(SerialTrainer, "_backward", counted)
    result = (
        rf"stopped inside round 2: round 1/3 .*, by signal {number.name}; start again to resume"
    )
    with pytest.raises(UserError, match=result):
        trained(path)
    assert len(steps) == 30 and signal.alarm(0) == 0
    state, cursor = checkpoint.load(path, DIGEST, run_at(path).state, CPU)
    assert state.round == 1 and cursor
    resumed = trained(path).state
    whole = run_of(task_of())
    total = int(sum(value for _, value in whole.history.cost["client_steps"]))
    assert len(steps) == 2 * total  # of the interrupted run with its resumption, and of the whole
    assert fingerprint(resumed.weights) == fingerprint(whole.weights)
    assert resumed.history.metrics == whole.history.metrics


def test_a_signal_in_a_long_evaluation_gives_up_and_keeps_the_local_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Evaluation in round 2 takes forever after the signal. The round's local work is saved, and
    the resumed run takes no step of round 2 again."""
    monkeypatch.setattr(job, "PATIENCE_SECONDS", 1)
    path, evaluate = tmp_path / "checkpoint", OnTest.evaluate

    def slow(self, task, network, state, updates):
        if state.round == 2:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(20)
        return evaluate(self, task, network, state, updates)

    with monkeypatch.context() as patch:
        patch.setattr(OnTest, "evaluate", slow)
        with pytest.raises(UserError, match="stopped inside round 2: round 1/3"):
            trained(path)
    steps, original = [], SerialTrainer._backward

    def counted(self, *arguments):
        steps.append(None)
        return original(self, *arguments)

    monkeypatch.setattr(SerialTrainer, "_backward", counted)
    resumed = trained(path).state
    assert len(steps) == resumed.history.cost["client_steps"][2][1]
    whole = run_of(task_of())
    assert fingerprint(resumed.weights) == fingerprint(whole.weights)
    assert resumed.history.metrics == whole.history.metrics


def test_checkpoints_inside_rounds_are_written_when_due(tmp_path: Path):
    """With no seconds between checkpoints one is written after each step, and the run continues."""
    actual = run_at(tmp_path / "checkpoint")
    saved, save = [], checkpoint.save

    def noted(path, state, digest, cursor=None):
        saved.append((state.round, bool(cursor)))
        save(path, state, digest, cursor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "save", noted)
        actual.train(0, 3, lambda state: None)
    steps = [int(value) for _, value in actual.state.history.cost["client_steps"]]
    for round in range(3):
        assert saved.count((round, True)) == steps[round]
        assert saved.count((round + 1, False)) == 1
    whole = run_of(task_of())
    assert fingerprint(actual.state.weights) == fingerprint(whole.weights)
