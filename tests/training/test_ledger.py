"""The ledger of a round: bytes, steps and seconds, worked out by hand."""

import math

import pytest

from cohort.records.history import History
from cohort.selection.simple import Ucb
from cohort.training import ledger as module
from cohort.training.ledger import Cursor, Ledger
from cohort.training.procedures.gathering import RunContext
from tests.training.small_task import run, small_task


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    thread_time = perf_counter


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(module, "time", fake)
    return fake


def closed(ledger: Ledger, round: int = 1, history: History | None = None) -> History:
    history = history or History()
    ledger.close(history, round)
    return history


def test_bytes_by_what_and_direction():
    ledger = Ledger()
    ledger.add_traffic("model", 100, to="clients", copies=3)
    ledger.add_traffic("model", 100, to="server", copies=2)
    ledger.add_traffic("losses", 4, to="server", copies=3)
    ledger.add_traffic("model", 100, to="client")
    ledger.add_traffic("model", 1, to="client", copies=5)
    assert ledger.traffic == {
        "model": {"server": 200, "clients": 300, "client": 105},
        "losses": {"server": 12, "clients": 0, "client": 0},
    }
    assert ledger.costs == {"bytes_down": 300, "bytes_up": 212, "bytes_between": 105}
    history = closed(ledger, round=7)
    assert history.cost["bytes_down"] == [(7, 300)] and history.cost["bytes_up"] == [(7, 212)]
    assert history.cost["bytes_between"] == [(7, 105)]
    assert history.traffic["model"].tolist() == [200, 300, 105]
    assert history.traffic["losses"].tolist() == [12, 0, 0]


def test_seconds_by_purpose(clock: Clock):
    """Ten seconds, of which training takes 2 + 4 and selecting 1; nothing accounts for the rest."""
    ledger = Ledger()
    for purpose, seconds in (("training", 2), ("selecting", 1), ("training", 4)):
        with ledger.timed(purpose):
            clock.now += seconds
    clock.now += 3
    assert ledger.seconds() == {"training": 6, "selecting": 1, "total": 10}
    history = closed(ledger, round=5)
    assert history.cost["seconds"] == [(5, 10)]
    assert history.cost["seconds_training"] == [(5, 6)]
    assert history.cost["seconds_selecting"] == [(5, 1)]
    assert "seconds_evaluating" not in history.cost and "seconds_total" not in history.cost


def test_measured_seconds_have_thirteen_significant_bits():
    """Pi is 6433.98 / 2^11, a third 5461.33 / 2^14, and 3451.764 seconds are 6903.53 halves."""
    history = History()
    for seconds in (math.pi, 1 / 3, 3451.764, 0.0):
        history.add_cost(1, seconds=seconds, simulated_seconds=seconds)
    values = [value for _, value in history.cost["seconds"]]
    assert values == [6434 / 2**11, 5461 / 2**14, 6904 / 2, 0.0]
    assert history.cost["simulated_seconds"][0] == (1, math.pi)  # calculated


def test_a_resumed_round_adds_the_seconds_before_the_interruption(clock: Clock):
    """Five seconds before, of which 4 in training; three after, of which 2 in training."""
    saved: list = []
    cursor = Cursor(write=saved.append)
    ledger = cursor.begin_round(())
    clock.now += 1
    with ledger.timed("training"):
        clock.now += 4
        cursor.save()
    clock.now += 1000  # between two processes
    resumed = Cursor(saved[0])
    ledger = resumed.begin_round(())
    clock.now += 1
    with ledger.timed("training"):
        clock.now += 2
    assert ledger.seconds() == {"training": 6, "total": 8}
    resumed.end_round()
    assert resumed.begin_round(()).seconds() == {"total": 0}


def test_scoring_is_selecting_without_the_clients_evaluations(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    """Of ten seconds for selecting, the server's choice takes one and learning from rewards two."""

    def takes(kind: type, method: str, seconds: int) -> None:
        plain = getattr(kind, method)

        def slow(self: object, *values: object) -> object:
            clock.now += seconds
            return plain(self, *values)

        monkeypatch.setattr(kind, method, slow)

    takes(Ucb, "select", 1)
    takes(Ucb, "observe", 2)
    takes(RunContext, "local_on_own", 7)
    history = run(small_task(selector=Ucb(), cohort=2, rounds=2)).history
    assert history.cost["seconds_scoring"] == [(1, 3), (2, 3)]
    assert history.cost["seconds_selecting"] == [(1, 10), (2, 10)]
    assert history.cost["seconds"] == [(1, 10), (2, 10)]
