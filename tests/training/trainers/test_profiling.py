"""Profiled runs: the same steps, with notes of each of them; what is made of the notes."""

import math

import numpy as np
import pytest

from cohort.records.history import PROFILE, History
from cohort.results.collect import step_metrics
from cohort.selection.pools import Probe
from cohort.training.evaluation import fingerprint
from cohort.training.servers import Momentum
from cohort.training.task import RunState
from tests.needs.by_hand import Spy, task_by_hand
from tests.training.small_task import run, small_task

PROFILED = "federated-profiled1"


def notes(state: RunState) -> dict[str, np.ndarray]:
    table = np.concatenate(state.history.profile)
    return {name: table[:, index] for index, name in enumerate(PROFILE)}


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_it_takes_the_same_steps_to_the_bit(momentum: float):
    settings = {"rounds": 3, "J": "J2e", "batch": 3, "cohort": 3, "momentum": momentum}
    plain, profiled = (
        run(small_task(**settings, procedure=name)) for name in ("federated", PROFILED)
    )
    assert fingerprint(plain.weights) == fingerprint(profiled.weights)
    assert plain.history.metrics == profiled.history.metrics
    assert not plain.history.profile


def test_every_step_is_noted_by_hand():
    """One step of each client on all its samples from a bias of zero: a loss of ln 3, and class 0
    is named, which 2 of 4, 0 of 2 and 1 of 3 samples have."""
    state = run(task_by_hand(Spy(), procedure=PROFILED))
    steps = notes(state)
    assert steps["client"].tolist() == [0, 1, 2]  # the last one has no samples
    assert steps["round"].tolist() == [1, 1, 1] and steps["step"].tolist() == [0, 0, 0]
    np.testing.assert_allclose(steps["loss"], [math.log(3)] * 3, rtol=1e-12)
    np.testing.assert_allclose(steps["accuracy"], [2 / 4, 0, 1 / 3], rtol=1e-12)
    assert (steps["seconds"] > 0).all()


def test_probes_are_noted_too():
    """Two batches of a probe, then the rest by those who are chosen: no step twice."""
    task = small_task(
        selector=Probe(batches=1, pool=2.0), server=Momentum(), cohort=2, J="J3", procedure=PROFILED
    )
    actual = notes(run(task))
    steps = list(zip(actual["client"], actual["step"], strict=True))
    assert len(set(steps)) == len(steps) == 4 * 1 + 2 * 2


def profiled_history() -> History:
    """Client 0 takes two steps in round 1 and one in round 2, client 2 takes two in round 2."""
    rows = [(1, 0, 0, 4.0, 0.25, 0.1), (1, 0, 1, 2.0, 0.50, 0.3), (2, 0, 0, 3.0, 0.75, 0.2)]
    rows += [(2, 2, 0, 1.0, 0.50, 0.6), (2, 2, 1, 1.0, 1.00, 0.1)]
    return History(profile=[np.array(rows[:2]), np.array(rows[2:])])


def test_means_by_round_by_step_and_by_client():
    steps, clients = step_metrics(profiled_history(), 4)
    np.testing.assert_allclose(steps["minibatch_accuracy"], [0.375, 0.75])
    np.testing.assert_allclose(steps["step_loss"], [8 / 3, 1.5])
    np.testing.assert_allclose(steps["step_accuracy"], [0.5, 0.75])
    np.testing.assert_allclose(steps["step_seconds"], [0.3, 0.2])
    nan = math.nan
    np.testing.assert_allclose(clients["batch_accuracy"], [0.5, nan, 0.75, nan])
    np.testing.assert_allclose(clients["batch_loss"], [3.0, nan, 1.0, nan])
    np.testing.assert_allclose(clients["batch_seconds"], [0.2, nan, 0.35, nan])
    assert step_metrics(History(), 4) == ({}, {})
