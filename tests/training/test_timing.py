"""Simulated time by hand."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from cohort.selection.pools import PowD, Probe
from cohort.selection.selector import Selector
from cohort.selection.simple import HighestLoss, Random
from cohort.training.devices import DEVICES, Devices, LogNormal, Speeds, parse_devices
from cohort.training.task import Task
from tests.needs.by_hand import MODEL_BYTES, costs, played, task_by_hand

HALF = MODEL_BYTES / 2


@dataclass(frozen=True, kw_only=True)
class ByHand(Devices):
    """The first of four clients trains on 10 samples in a second, the others on 1; a model takes 2
    seconds to send, of the second client 8."""

    name: ClassVar[str] = "by-hand"

    def speeds(self, clients: int, rng: np.random.Generator) -> Speeds:
        return Speeds(np.array([10.0, 1, 1, 1]), np.array([HALF, HALF / 4, HALF, HALF]))


def timed(selector: Selector, monkeypatch: pytest.MonkeyPatch, **settings: object) -> Task:
    monkeypatch.setitem(DEVICES.by_name, "by-hand", ByHand)
    return task_by_hand(selector, client_devices="by-hand", **settings)


def seconds(selector: Selector, monkeypatch: pytest.MonkeyPatch, **settings: object) -> list[float]:
    return costs(played(timed(selector, monkeypatch, **settings)), "simulated_seconds")


def test_a_round_lasts_as_long_as_its_slowest_client(monkeypatch: pytest.MonkeyPatch):
    """One step of a batch of 10 of everybody: 1 second of the first client, 10 of the others, and
    a model in both directions: 4 seconds, or 16."""
    assert seconds(Random(), monkeypatch, cohort=4, rounds=2) == [26, 26]


def test_evaluations_take_a_third(monkeypatch: pytest.MonkeyPatch):
    """A pool of all clients is asked: 2 seconds for the model, 8 of the second client, whose two
    samples take 2/3 of a second; then the cohort trains and sends the model."""
    (first,) = seconds(PowD(pool=4), monkeypatch, cohort=1, rounds=1)
    training = {0: 1 + 2, 1: 10 + 8, 2: 10 + 2}
    assert any(first == pytest.approx(8 + 2 / 3 + time) for time in training.values())


def test_evaluations_by_the_server_take_no_time(monkeypatch: pytest.MonkeyPatch):
    """It evaluates four models on five reserved samples while no client waits."""
    task = timed(HighestLoss(), monkeypatch, cohort=4, rounds=1, reserve=5)
    cost = played(task).history.cost
    assert cost["selection_samples"] == [(1, 20)] and cost["simulated_seconds"] == [(1, 26)]


def test_probes_come_before_the_rest(monkeypatch: pytest.MonkeyPatch):
    """All probe one batch, which is all their work, and the cohort sends its models."""
    (first,) = seconds(Probe(pool=2, batches=1), monkeypatch, cohort=2, rounds=1)
    assert first in (18 + 8, 18 + 2)


def test_nothing_is_simulated_of_unknown_devices():
    state = played(task_by_hand(Random(), cohort=4, rounds=1))
    assert "simulated_seconds" not in state.history.cost


def test_speeds_are_log_normal_and_the_same_in_every_run():
    devices = parse_devices("lognormal-0.5-samples200-megabits8")
    assert devices == LogNormal(spread=0.5, samples=200, megabits=8)
    speeds = devices.speeds(20_000, np.random.default_rng(0))
    assert speeds is not None
    for values, median in ((speeds.samples, 200), (speeds.bytes, 1e6)):
        logs = np.log(values / median)
        assert abs(logs.mean()) < 0.02 and abs(logs.std() - 0.5) < 0.01
    assert abs(np.corrcoef(np.log(speeds.samples), np.log(speeds.bytes))[0, 1]) < 0.03
