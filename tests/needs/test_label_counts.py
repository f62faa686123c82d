"""Label counts: as they are, with noise, or as a lie; sent once."""

from dataclasses import dataclass

import numpy as np

from cohort.core.randomness import generator
from cohort.privacy import LabelReport
from cohort.selection.entropy import Entropy
from tests.needs.by_hand import COUNTS, MODEL_BYTES, costs, played, spying, task_by_hand

MANY = np.random.default_rng(1).integers(0, 9, (10, 4))
CountsSpy = spying("label_counts")


@dataclass(frozen=True, kw_only=True)
class NoisySpy(CountsSpy):
    @property
    def label_report(self) -> LabelReport:
        return LabelReport(epsilon=0.5)


def test_true_counts_are_reported_as_they_are():
    state = played(task_by_hand(selector := CountsSpy(), rounds=2))
    assert len(selector.views) == 1 + 2 * 2
    for view in selector.views:
        np.testing.assert_array_equal(view.label_counts, COUNTS)
    np.testing.assert_array_equal(state.reports["label_counts"], COUNTS)


def test_counts_are_sent_once_as_32_bit_integers():
    """Four clients send four bytes for each of three classes, before the first of three rounds."""
    state = played(task_by_hand(CountsSpy(), rounds=3))
    models = 4 * MODEL_BYTES
    assert costs(state, "bytes_up") == [models + 4 * 4 * 3, models, models]
    assert costs(state, "bytes_down") == [models] * 3
    assert costs(state, "selection_samples") == [0] * 3
    assert state.history.traffic["label_counts"].tolist() == [4 * 4 * 3, 0, 0]


def test_noise_is_laplace_noise_of_the_runs_seed_and_the_same_in_every_round():
    task = task_by_hand(selector := NoisySpy(), rounds=2, seed=3)
    played(task)
    noise = generator(3, "selection").laplace(scale=2, size=(4, 3))
    for view in selector.views:
        np.testing.assert_array_equal(view.label_counts, COUNTS + noise)


def test_the_entropy_selector_chooses_by_noisy_counts():
    """The noise of epsilon 0.01 is a hundred samples, the counts say nothing any more."""
    noisy = played(task_by_hand(Entropy(epsilon=0.01, buffer=0.0), cohort=2, rounds=8))
    reported = noisy.reports["label_counts"]
    assert (reported != COUNTS).all() and np.abs(reported).max() > 20
    plain = played(task_by_hand(Entropy(buffer=0.0), cohort=2, rounds=8))
    firsts, others = (np.stack(state.history.cohorts) for state in (plain, noisy))
    assert firsts[:, 0].tolist() == others[:, 0].tolist()  # drawn, whatever the counts
    assert firsts[:, 1].tolist() != others[:, 1].tolist()


def test_liars_claim_their_size_of_every_class_alike():
    reported = LabelReport(liars=0.3).reported_counts(MANY, np.random.default_rng(0))
    lying = np.flatnonzero((reported != MANY).any(axis=1))
    assert len(lying) == 3
    np.testing.assert_array_equal(
        reported[lying], np.repeat(MANY[lying].sum(axis=1) / 4, 4).reshape(3, 4)
    )


def test_liars_add_noise_too():
    rng = np.random.default_rng(0)
    rng.choice(10, 3, replace=False)
    noise = rng.laplace(scale=2, size=MANY.shape)
    both = LabelReport(liars=0.3, epsilon=0.5).reported_counts(MANY, np.random.default_rng(0))
    lies = LabelReport(liars=0.3).reported_counts(MANY, np.random.default_rng(0))
    np.testing.assert_array_equal(both, lies + noise)
