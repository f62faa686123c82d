"""What clients report of labels and predictions: by hand, what it costs, and who sees it."""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import pytest

from cohort.core.randomness import generator
from cohort.selection.entropy import Entropy
from cohort.selection.peco import Peco
from cohort.selection.selector import Selector
from cohort.training.task import Task
from tests.needs.by_hand import COUNTS, MODEL_BYTES, RESERVED, costs, played, spying, task_by_hand
from tests.training.test_whose_samples import LAST

MANY = np.random.default_rng(1).integers(0, 9, (10, 4))
CountsSpy = spying("label_counts")
SoftSpy = spying("soft_labels")
PredictionSpy = spying("reserved_predictions", "reserved_correct")
AccuracySpy = spying("local_accuracy")
OverlapSpy = spying("overlap", "label_counts", "candidate_loss")


@dataclass(frozen=True, kw_only=True)
class NoisySpy(CountsSpy):
    def reported_counts(self, label_counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return Entropy(epsilon=0.5).reported_counts(label_counts, rng)


def softmax(*bias: float) -> list[float]:
    total = sum(map(math.exp, bias))
    return [math.exp(bia) / total for bia in bias]


# of each client after a step from zero with rate 0.3: a bias of 0.3 (label shares - 1/3)
TRAINED = [softmax(0.05, -0.025, -0.025), softmax(-0.1, 0.2, -0.1), softmax(0, -0.1, 0.1)]


def overlapping(selector: Selector, borrowers: list[int], **settings: object) -> Task:
    """A task by hand, some of whose clients overlap."""
    task = task_by_hand(selector, **settings)
    shards = dataclasses.replace(task.shards, borrowers=np.array(borrowers, dtype=int))
    return dataclasses.replace(task, shards=shards)


def test_true_counts_are_sent_once_as_32_bit_integers():
    """Four clients send four bytes for each of three classes, before the first of three rounds."""
    state = played(task_by_hand(selector := CountsSpy(), rounds=3))
    for view in selector.views:
        np.testing.assert_array_equal(view.label_counts, COUNTS)
    np.testing.assert_array_equal(state.reports["label_counts"], COUNTS)
    models = 4 * MODEL_BYTES
    assert costs(state, "bytes_up") == [models + 4 * 4 * 3, models, models]
    assert costs(state, "bytes_down") == [models] * 3
    assert costs(state, "selection_samples") == [0] * 3
    assert state.history.traffic["label_counts"].tolist() == [4 * 4 * 3, 0, 0]


def test_noise_is_that_of_the_runs_seed_and_the_same_in_every_round():
    played(task_by_hand(selector := NoisySpy(), rounds=2, seed=3))
    noise = generator(3, "selection").laplace(scale=2, size=(4, 3))
    for view in selector.views:
        np.testing.assert_array_equal(view.label_counts, COUNTS + noise)


def test_the_entropy_selector_chooses_by_noisy_counts():
    """The noise of epsilon 0.01 is a hundred samples, the counts say nothing any more."""
    noisy = played(task_by_hand(Entropy(epsilon=0.01, buffer=0.0), cohort=2, rounds=8))
    plain = played(task_by_hand(Entropy(buffer=0.0), cohort=2, rounds=8))
    cohorts, noisy_cohorts = (np.stack(state.history.cohorts) for state in (plain, noisy))
    assert cohorts[:, 0].tolist() == noisy_cohorts[:, 0].tolist()  # drawn, whatever the counts
    assert cohorts[:, 1].tolist() != noisy_cohorts[:, 1].tolist()


def test_liars_claim_their_size_of_every_class_alike_and_add_noise_too():
    lies = Entropy(liars=0.3).reported_counts(MANY, np.random.default_rng(0))
    lying = np.flatnonzero((lies != MANY).any(axis=1))
    assert len(lying) == 3
    expected = np.repeat(MANY[lying].sum(axis=1) / 4, 4).reshape(3, 4)
    np.testing.assert_array_equal(lies[lying], expected)
    noisy_lies = Entropy(liars=0.3, epsilon=0.5).reported_counts(MANY, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    rng.choice(10, 3, replace=False)
    np.testing.assert_array_equal(noisy_lies, lies + rng.laplace(scale=2, size=MANY.shape))


def test_soft_labels_by_hand_and_what_they_cost():
    """Each of four clients evaluates its own samples, nine in all, and sends three numbers."""
    state = played(task_by_hand(selector := SoftSpy(), rounds=2))
    expected = [*TRAINED, [math.nan] * 3]
    np.testing.assert_allclose(selector.reports[0]["soft_labels"], expected, rtol=1e-12)
    assert costs(state, "selection_samples") == [9, 9]
    assert costs(state, "bytes_up") == [4 * MODEL_BYTES + 4 * 3 * 4] * 2
    assert costs(state, "bytes_down") == [4 * MODEL_BYTES] * 2
    assert state.history.traffic["soft_labels"].tolist() == [2 * 4 * 3 * 4, 0, 0]


def test_predictions_by_hand_and_one_evaluation_for_two_needs():
    """Four local models on five samples, by the server: nothing is sent. That of the client without
    samples is the global one."""
    state = played(task_by_hand(selector := PredictionSpy(), rounds=2))
    predictions, correct = (selector.reports[0][need] for need in sorted(PredictionSpy.needs)[::-1])
    assert predictions.dtype == np.float64
    expected = [[row] * len(RESERVED) for row in (*TRAINED, [1 / 3] * 3)]
    np.testing.assert_allclose(predictions, expected, rtol=1e-12)
    named = [0, 1, 2, 0]
    assert correct.tolist() == [[float(label == name) for label in RESERVED] for name in named]
    assert costs(state, "selection_samples") == [20, 20]
    assert costs(state, "bytes_up") == costs(state, "bytes_down") == [4 * MODEL_BYTES] * 2


def test_who_does_not_answer_predicts_nothing():
    played(task_by_hand(selector := PredictionSpy(), rounds=4, participation="dropout-0.5"))
    for reports in selector.reports:
        missing = np.isnan(reports["reserved_predictions"]).all(axis=(1, 2))
        assert missing.sum() == 2
        np.testing.assert_array_equal(np.isnan(reports["reserved_correct"]).all(axis=1), missing)


def test_local_accuracy_by_hand():
    """Clients name the class that they hold most of: right in 2 of 4, 2 of 2 and 2 of 3 cases."""
    state = played(task_by_hand(selector := AccuracySpy(), rounds=1))
    accuracies = selector.reports[0]["local_accuracy"]
    np.testing.assert_allclose(accuracies, [2 / 4, 1, 2 / 3, math.nan])
    assert costs(state, "selection_samples") == [9]
    assert costs(state, "bytes_up") == [4 * MODEL_BYTES + 4 * 4]


def test_who_overlaps_is_known_from_the_start_and_nothing_is_sent():
    state = played(overlapping(selector := OverlapSpy(), [2], rounds=2))
    assert [view.reports["overlap"].tolist() for view in selector.views] == [[0, 0, 1, 0]] * 5
    assert set(selector.views[1].reports) == {"overlap", "candidate_loss"}
    assert set(state.history.traffic) == {"model", "label_counts", "candidate_loss"}


def test_peco_records_whom_it_prefers():
    """Equal probabilities in the first round of the clients with samples, of which two in three
    overlap. Later client 1, whose predictions are wrong most often, is less likely. Of one client
    against three regular ones, of which one has no samples: 1/3 to a mean of 2/9."""
    metrics = played(overlapping(Peco(), [1, 2], rounds=3, cohort=4)).history.metrics
    masses, preferences = (
        np.array(metrics[f"overlapping_{name}"])[:, 1] for name in ("probability", "preference")
    )
    assert masses[0] == 2 / 3 and preferences[0] == 2.0 and preferences[2] < 2
    np.testing.assert_allclose(preferences, masses / (1 - masses), rtol=1e-12)
    metrics = played(overlapping(Peco(), [1], rounds=1, cohort=4)).history.metrics
    assert metrics["overlapping_preference"] == [(1, pytest.approx(1.5))]
    for borrowers, share in (([0, 1], 0.5), ([1, 2], 1.0)):  # of the cohort, clients 2 and 1
        metrics = played(overlapping(LAST, borrowers, cohort=2)).history.metrics
        assert metrics["overlapping_chosen"] == [(1, share)]
