"""Whose samples are evaluated and drawn, when, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from scipy import stats

from cohort.selection.fedcor import FedCor
from cohort.selection.random import Random
from cohort.selection.selector import Selector, State, View
from cohort.training.objectives.fedrs import FedRS
from cohort.training.objectives.objective import native_coefficients
from cohort.training.participation import parse_participation
from cohort.training.procedures.federated.rounds import allocated_samples
from tests.needs.by_hand import COUNTS, MODEL_BYTES, Spy, costs, played, task_by_hand
from tests.training.small_task import run, small_task
from tests.training.test_next_cohort import HELD_OUT, task_of
from tests.training.test_rounds import evaluated_task
from tests.training.test_timing import timed


@dataclass(frozen=True, kw_only=True)
class Last(Selector):
    """Always chooses clients 2 and 1, in this order."""

    name: ClassVar[str] = "last"

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        return np.array([2, 1])


def test_own_samples_are_those_of_the_client_not_of_its_row():
    """Client 2 is right in 2 of 3 cases and client 1 in 2 of 2; on the samples of clients 0 and 1
    their models would be right in 1 of 4 and 2 of 2."""
    state = played(task_by_hand(Last(), cohort=2, evaluate_own=1))
    assert state.history.metrics["own_samples_accuracy"] == [(1, pytest.approx((2 / 3 + 1) / 2))]


def test_the_next_draw_is_not_that_of_this_round_either():
    task = task_of(Random(), rounds=40, evaluate_next=1, lr=0.0)
    state = run(task)
    shown = [loss for _, loss in state.history.metrics["next_cohort_loss"]]

    def loss_on(cohort: np.ndarray) -> float:
        indices = torch.tensor([sample for client in cohort for sample in HELD_OUT[client]])
        outputs = torch.func.functional_call(
            task.model, task.initial_weights(), task.train_samples.inputs(indices)
        )
        return float(torch.nn.functional.cross_entropy(outputs, task.train_samples.labels[indices]))

    same = sum(
        abs(loss - loss_on(cohort)) < 1e-12
        for loss, cohort in zip(shown, state.history.cohorts, strict=True)
    )
    assert 0 < same < 40


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_fedrs_in_native_code_scales_missing_classes_by_alpha(alpha: float):
    objective = FedRS(alpha=alpha)
    statistics = objective.label_statistics(torch.tensor([3.0, 0.0]))
    coefficients = native_coefficients(objective, statistics)
    assert coefficients.scale.tolist() == [1.0, pytest.approx(alpha)]


@dataclass(frozen=True, kw_only=True)
class ExpectedSpy(Spy):
    needs: ClassVar[frozenset[str]] = frozenset({"expected_duration"})


def test_an_expected_round_has_both_transfers(monkeypatch: pytest.MonkeyPatch):
    """One step on a batch of 10, and the model there and back."""
    played(timed(selector := ExpectedSpy(), monkeypatch))
    assert selector.views[0].reports["expected_duration"].tolist() == [
        1 + 4,
        10 + 16,
        10 + 4,
        10 + 4,
    ]


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


def test_fedcor_pays_for_the_rounds_in_which_it_asks_only():
    """Rounds 1, 2, 5 and 8 are random, and the round after each needs the losses as well; others
    send the model to the cohort alone, and no loss."""
    selector = FedCor(warmup=2, interval=3, dimension=2)
    state = played(task_by_hand(selector, cohort=1, rounds=8))
    asked = [True, True, True, False, True, True, False, True]
    assert costs(state, "selection_samples") == [9 * asks for asks in asked]
    assert costs(state, "bytes_down") == [MODEL_BYTES * (4 if asks else 1) for asks in asked]
    assert state.history.traffic["candidate_loss"].tolist() == [6 * 4 * 4, 0, 0]


def test_a_client_that_holds_out_nothing_is_not_the_worst():
    history = run(evaluated_task(((), (3,), (0, 1, 4), ()), evaluate_holdout=1)).history
    worst = [value for _, value in history.metrics["holdout_worst_accuracy"]]
    assert len(worst) == 5 and np.isfinite(worst).all()


def test_validation_is_evaluated_in_every_round_for_a_schedule_that_watches_it():
    task = small_task(
        sizes=(9,),
        procedure="centralized",
        J="J1e",
        rounds=7,
        evaluate_every=3,
        validation=(0, 1, 2),
        schedule="plateau",
    )
    metrics = run(task).history.metrics
    assert [round for round, _ in metrics["validation_loss"]] == list(range(1, 8))
    assert [round for round, _ in metrics["test_loss"]] == [3, 6, 7]


def test_the_first_client_stays_if_all_would_drop_out():
    stays = [
        parse_participation("bernoulli-0.999").responds(np.arange(3), np.random.default_rng(seed))
        for seed in range(50)
    ]
    alone = [responds for responds in stays if responds.sum() == 1]
    assert alone and sum(responds[0] for responds in alone) > 45


def test_the_share_of_stragglers_is_rounded():
    """0.29 * 100 is 28.999... in binary."""
    rng = np.random.default_rng
    efforts = parse_participation("stragglers-0.29").efforts(100, 10**9, rng(0), rng(1))
    assert (efforts < 10**9).sum() == 29
