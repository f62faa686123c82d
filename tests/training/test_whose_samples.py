"""Whose samples are evaluated and drawn, when, and what that costs."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

from cohort.selection.entropy import KL
from cohort.selection.simple import Random
from cohort.training.procedures import federated
from cohort.training.procedures.federated import allocated_samples
from cohort.training.updates import LocalWork
from tests.needs.by_hand import COUNTS, Spy, played, task_by_hand
from tests.training.small_task import run, small_task
from tests.training.test_empty_clients import PlannedCohorts
from tests.training.test_timing import timed

LAST = PlannedCohorts(cohorts=((2, 1),))  # of four clients, in this order


def test_own_samples_are_those_of_the_client_not_of_its_row():
    """Client 2 is right in 2 of 3 cases and client 1 in 2 of 2; on the samples of clients 0 and 1
    their models would be right in 1 of 4 and 2 of 2."""
    state = played(task_by_hand(LAST, cohort=2, evaluate_own=1))
    assert state.history.metrics["own_samples_accuracy"] == [(1, pytest.approx((2 / 3 + 1) / 2))]


def test_the_aggregated_model_on_the_samples_of_its_cohort():
    """Of five samples two each are of classes 1 and 2, and the bias decides for 2: right in 2 of 3
    cases at client 2 and never at client 1."""
    settings = {"cohort": 2, "evaluators": "cohort_samples 1"}
    state = played(task_by_hand(LAST, bias=(0, 0, 0.01), **settings))
    assert state.history.metrics["cohort_samples_accuracy"] == [(1, pytest.approx(1 / 3))]


@dataclass(frozen=True, kw_only=True)
class ExpectedSpy(Spy):
    needs: ClassVar[frozenset[str]] = frozenset({"expected_duration", "transfer_time"})


def test_an_expected_round_has_both_transfers(monkeypatch: pytest.MonkeyPatch):
    """One step on a batch of 10, but none without samples, and the model there and back."""
    played(timed(selector := ExpectedSpy(), monkeypatch))
    expected = [1 + 4, 10 + 16, 10 + 4, 0 + 4]
    assert selector.views[0].reports["expected_duration"].tolist() == expected
    assert selector.views[0].reports["transfer_time"].tolist() == [2, 8, 2, 2]


def test_the_entropy_of_a_cohort_is_that_of_who_answered():
    state = played(task_by_hand(Random(), cohort=4, rounds=8, participation="dropout-0.5"))
    recorded = dict(state.history.metrics["cohort_entropy"])
    for round, answered in enumerate(state.history.responders, start=1):
        labels = COUNTS[answered].sum(axis=0)
        expected = stats.entropy(labels, base=2) if labels.any() else 0.0
        assert recorded[round] == pytest.approx(expected, abs=1e-12)
    assert len(set(recorded.values())) > 2


def test_a_portion_is_drawn_anew_in_every_round():
    task = small_task()
    client = 1
    labels = task.train_samples.labels.numpy()
    quota = np.minimum(task.shards.label_counts[client], 1)
    drawn = [allocated_samples(task, client, quota, round) for round in range(1, 9)]
    for samples in drawn:
        assert np.bincount(labels[samples], minlength=3).tolist() == quota.tolist()
        assert set(samples) <= set(task.shards.indices[client])
    assert len({tuple(sorted(samples)) for samples in drawn}) > 1


@pytest.mark.parametrize("redraw", [True, False])
def test_or_only_once(redraw: bool, monkeypatch: pytest.MonkeyPatch):
    """KL's set of clients is the same in every round, and so are their samples unless redrawn."""
    drawn = []

    def record(*args: Any) -> np.ndarray:
        drawn.append(allocated_samples(*args))
        return drawn[-1]

    monkeypatch.setattr(federated, "allocated_samples", record)
    run(small_task(selector=KL(redraw=redraw), rounds=6, cohort=2, sizes=(9, 9, 9)))
    samples = {tuple(sorted(samples)) for samples in drawn}
    assert (len(samples) == len(drawn) / 6) is not redraw


def test_samples_may_be_taken_as_they_were_dealt():
    settings = replace(small_task().settings, order="dealt", J="J2e", batch=2)
    samples = np.array([5, 3, 9])
    work = LocalWork(client=0, round=1, weights={}, samples=samples, lr=0.1)
    batches = [samples[batch].tolist() for _, batch in work.steps(settings)]
    assert batches == [[5, 3], [9], [5, 3], [9]]


def test_validation_is_evaluated_in_every_round_for_a_schedule_that_watches_it():
    settings = {"procedure": "centralized", "J": "J1e", "rounds": 7, "evaluate_every": 3}
    task = small_task(sizes=(9,), validation=(0, 1, 2), schedule="plateau", **settings)
    metrics = run(task).history.metrics
    assert [round for round, _ in metrics["validation_loss"]] == list(range(1, 8))
    assert [round for round, _ in metrics["test_loss"]] == [3, 6, 7]
