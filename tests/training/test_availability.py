"""Who is there: addressed draws, known shares, and rounds in which somebody or everybody is away."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cohort.core.errors import UserError
from cohort.core.files import sha256
from cohort.core.randomness import generator
from cohort.records.history import History
from cohort.selection import SELECTORS
from cohort.training.availability import available_clients, parse_availability
from tests.training.small_task import run, small_settings, small_task

SCHEMES = ["markov-2-2", "markov-3-9", "markov-12-2.5", "diurnal-0.3", "diurnal-0.6-day3"]


def grid(name: str, clients: int, rounds: int, seed: int = 0) -> np.ndarray:
    """Whether each client is there when each round begins (round, client)."""
    scheme = parse_availability(name)
    return np.array([scheme.present(clients, seed, r, r - 1.0) for r in range(1, rounds + 1)])


@pytest.mark.parametrize(("up", "down"), [(2, 2), (4, 4), (3, 9), (20, 2.5)])
def test_markov_clients_are_on_and_off_for_their_mean_spells(up: float, down: float):
    """Shares and frequencies of changes, from the first round on: counted, within five standard
    errors of independent rounds, which chains have more than."""
    is_there = grid(f"markov-{up:g}-{down:g}", 2000, 60)
    share = up / (up + down)
    assert is_there[0].mean() == pytest.approx(share, abs=5 * np.sqrt(0.25 / 2000))
    assert is_there[-1].mean() == pytest.approx(share, abs=5 * np.sqrt(0.25 / 2000))
    before, after = is_there[:-1], is_there[1:]
    for chance, changes in ((1 / up, ~after[before]), (1 / down, after[~before])):
        error = np.sqrt(chance * (1 - chance) / len(changes))
        assert changes.mean() == pytest.approx(chance, abs=5 * error)
    # geometric spells: whether one goes on does not depend on how long it has lasted
    long = before[:-1] & before[1:]
    assert (~after[1:][long]).mean() == pytest.approx(1 / up, abs=5 * np.sqrt(0.25 / long.sum()))


def test_markov_states_follow_from_seed_round_and_client():
    scheme, rounds = parse_availability("markov-5-7"), [9, 3, 200, 1, 9]
    present = [scheme.present(30, 1, round, 0.0) for round in rounds]
    in_order = grid("markov-5-7", 30, 200, seed=1)
    np.testing.assert_array_equal(present, in_order[np.array(rounds) - 1])
    assert (in_order != grid("markov-5-7", 30, 200, seed=2)).any()


@pytest.mark.parametrize(("name", "hours", "day"), [("0.25", 6, 24), ("0.5-day12", 6, 12)])
def test_a_day_has_one_spell_that_begins_in_each_zone_at_another_hour(
    name: str, hours: int, day: int
):
    is_there = grid(f"diurnal-{name}", 500, 2 * day)
    assert (is_there.sum(axis=0) == 2 * hours).all()
    changes = (is_there != np.roll(is_there, 1, axis=0)).sum(axis=0)
    assert (changes == 4).all()  # on and off, on two days
    np.testing.assert_array_equal(is_there[:day], is_there[day:])
    zones = generator(0, "availability").integers(24, size=500)
    assert len(np.unique(zones)) == 24
    np.testing.assert_array_equal(is_there[0], zones * day / 24 < hours)


def test_hours_are_those_of_the_simulated_clock_before_the_round():
    settings = small_settings(clients=50, availability="diurnal-0.5")
    history = History()
    for round, seconds in enumerate((3600.0, 5 * 3600.0, 18 * 3600.0), start=1):
        history.add_cost(round, simulated_seconds=seconds)
    scheme = parse_availability("diurnal-0.5")
    for round, hour in ((1, 0), (2, 1), (3, 6), (4, 24)):
        expected = np.flatnonzero(scheme.present(50, 0, 99, hour))
        np.testing.assert_array_equal(available_clients(settings, history, round), expected)


def drawn_settings(rng: np.random.Generator) -> dict[str, Any]:
    """A random federation in which not all clients are there."""
    clients = int(rng.integers(4, 10))
    return {
        "sizes": (*rng.integers(0, 7, clients - 1).tolist(), 3),
        "cohort": int(rng.integers(1, 4)),
        "rounds": 5,
        "seed": int(rng.integers(1000)),
        "availability": str(rng.choice(SCHEMES)),
        "client_devices": str(rng.choice(["untimed", "lognormal-1"])),
    }


@pytest.mark.parametrize("seed", range(200))
def test_nobody_absent_is_ever_chosen(seed: int):
    """The selectors in turn, each in random settings. A cohort takes all who are there if they are
    not more than it has places; with nobody there nothing is trained."""
    rng = np.random.default_rng(seed)
    names = [name for name in SELECTORS if not SELECTORS[name].__module__.startswith("my.")]
    selector = SELECTORS[names[seed % len(names)]]()
    settings = drawn_settings(rng)
    if selector.name == "entropy":
        selector = SELECTORS["entropy"](evict=str(rng.choice(["round", "pick"])), buffer=0.4)
    task = small_task(selector=selector, **settings)
    before = task.initial_weights()
    for state in task.procedure.rounds_of(task).run(task.procedure.begin(task)):
        history, round, cohort = state.history, state.round, state.history.cohorts[-1]
        there = available_clients(task.settings, history, round)
        assert set(cohort) <= set(there)
        assert history.metrics["available"][-1] == (round, len(there))
        if len(there) <= task.settings.cohort and selector.name not in MAY_BE_SMALLER:
            assert set(cohort) == set(there)
        trains = bool(task.sizes[cohort].sum())
        changed = any(not torch.equal(before[name], state.weights[name]) for name in before)
        assert changed == trains or selector.name == "kl"  # which may leave out all samples
        before = state.weights


MAY_BE_SMALLER = {"fixed-probability", "kl", "oort-fedscale", "tifl"}
MAY_BE_SMALLER |= {"by-size", "clustered-sizes", "clustered-updates", "optimal-sampling"}


def test_every_strategy_of_a_seed_meets_the_same_clients():
    counts = []
    for name in ("random", "round-robin", "loss", "kl", "divfl"):
        task = small_task(
            selector=SELECTORS[name](), cohort=2, rounds=12, availability="markov-2-3"
        )
        counts.append(run(task).history.metrics["available"])
    assert all(own == counts[0] for own in counts)
    assert len({count for _, count in counts[0]}) > 1


def test_an_idle_round_waits_on_the_clock_and_costs_nothing():
    """With two zones' clients there is somebody only in a part of the day of two hours."""
    task = small_task(
        sizes=(4, 9), rounds=30, availability="diurnal-0.1-day2", client_devices="lognormal-1"
    )
    history = run(task).history
    idle = [round for round, count in history.metrics["available"] if not count]
    assert 0 < len(idle) < 30
    seconds, steps = dict(history.cost["simulated_seconds"]), dict(history.cost["client_steps"])
    assert {seconds[round] for round in idle} == {300.0}  # a zone: two hours / 24
    assert {steps[round] for round in idle} == {0}
    assert all(len(history.cohorts[round - 1]) == 0 for round in idle)
    again = History.from_arrays(history.arrays())
    assert [own.tolist() for own in again.cohorts] == [own.tolist() for own in history.cohorts]


TABLE = "device,start,end\na,0,2\nb,1,3\na,5,6\nc,0,8\n"


@pytest.fixture
def table(empty_folder: Path) -> Path:
    file = empty_folder / "my/availability/phones.csv"
    file.parent.mkdir(parents=True)
    file.write_text(TABLE)
    return file


def test_a_trace_by_hand(table: Path):
    scheme = parse_availability(f"trace-phones-{sha256(table)[:12]}")
    scheme.check(3)
    own = generator(0, "availability").permutation(3)
    by_hour = {0: "ac", 1: "abc", 1.5: "abc", 2: "bc", 3: "c", 5.5: "ac", 6: "c", 8: "ac", 9: "abc"}
    for hour, devices in by_hour.items():
        expected = ["abc"[device] in devices for device in own]
        assert scheme.present(3, 0, 7, hour).tolist() == expected
    with pytest.raises(ValueError, match="has 3 devices for 4 clients"):
        scheme.check(4)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("device,start\na,0\n", "phones.csv: has no column end; it needs device, start, end"),
        ("device,start,end\n", "phones.csv: has no rows"),
        ("device,start,end\na,0,1\nb,noon,5\n", "line 3: start and end must be hours"),
        ("device,start,end\na,3,2\n", "line 2: 3 to 2 is no time from 0 on"),
        ("device,start,end\na,0\n", "line 2: start and end must be hours"),
        ("start,end,device\n0,1,a\n0,2\n", "line 3: has no device"),
    ],
)
def test_an_unusable_table(table: Path, text: str, sentence: str):
    table.write_text(text)
    with pytest.raises(UserError, match=sentence):
        parse_availability(f"trace-phones-{sha256(table)[:12]}").check(1)


def test_another_table_than_that_of_the_checksum(table: Path):
    digits = sha256(table)[:12]
    with pytest.raises(UserError, match=rf"write trace-phones-{digits} for .*phones\.csv"):
        parse_availability("trace-phones-0123456789ab").check(1)
    with pytest.raises(UserError, match=r"there is no file .*tablets\.csv"):
        parse_availability(f"trace-tablets-{digits}").check(1)
