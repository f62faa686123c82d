"""The deal stage: a plan file and prepared labels in, shards out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from cohort.cell import Planned, freeze, plan_file
from cohort.data.sampling import share_of
from cohort.data.store import FORMAT
from cohort.errors import UserError
from cohort.shards import Shards, deal, read

PER_CLASS = [120, 80, 100, 60, 140]
LABELS = np.random.default_rng(4).permutation(np.repeat(np.arange(5), PER_CLASS))
NAMES = ["iid", "classes-2", "dir-0.5", "dirplain-0.5"]


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepared data of six classes, the last without a sample."""
    monkeypatch.chdir(tmp_path)
    with h5py.File("data.h5", "w") as file:
        file["train/labels"] = LABELS.astype(np.uint16)
        file.attrs.update({"classes": 6, "format": FORMAT})


def dealt(**changes: Any) -> Shards:
    settings = {"dataset": "toy", "samples": 1.0, "partition": "iid", "clients": 10, "seed": 0, "validation": 0, "holdout": 0.0} | changes
    freeze(Planned("shards.h5", "k0123456789ab", settings, {}, {"data": "data.h5"}))
    deal(plan_file("k0123456789ab"), "shards.h5")
    return read("shards.h5")


@pytest.mark.parametrize("name", NAMES)
def test_label_counts_are_those_of_the_indices(name: str):
    shards = dealt(partition=name)
    assert shards.label_counts.shape == (10, 6)
    for indices, counts in zip(shards.indices, shards.label_counts, strict=True):
        assert counts.tolist() == [int((LABELS[indices] == label).sum()) for label in range(6)]
    assert shards.label_counts.sum(axis=0).tolist() == [*PER_CLASS, 0]


@pytest.mark.parametrize("name", NAMES)
def test_stored_shards_cover_every_sample_once(name: str):
    shards = dealt(partition=name)
    assert len(shards.indices) == 10
    np.testing.assert_array_equal(np.sort(np.concatenate(shards.indices)), np.arange(len(LABELS)))


@pytest.mark.parametrize("name", NAMES)
def test_a_share_deals_the_samples_of_that_share(name: str):
    """Half of each class, the same half for every seed, dealt by their indices in the whole data set."""
    shards = [dealt(partition=name, samples=0.5, seed=seed) for seed in (0, 1)]
    for found in shards:
        np.testing.assert_array_equal(np.sort(np.concatenate(found.indices)), share_of(LABELS, 0.5, "train share"))
        assert found.label_counts.sum(axis=0).tolist() == [60, 40, 50, 30, 70, 0]
        for indices, counts in zip(found.indices, found.label_counts, strict=True):
            np.testing.assert_array_equal(np.bincount(LABELS[indices], minlength=6), counts)


def test_the_minimum_of_a_share_is_that_share_of_the_minimum():
    """Half of 500 samples cannot give 30 clients ten each, but five."""
    assert min(len(indices) for indices in dealt(partition="dir-50", clients=30, samples=0.5).indices) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_shards_depend_on_the_seed_and_on_nothing_else(name: str):
    once, again, other = (np.concatenate(dealt(partition=name, seed=seed).indices) for seed in (3, 3, 4))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, other)


@pytest.mark.parametrize("samples", [1.0, 0.5])
def test_shared_samples_are_counted_and_the_achieved_ratio_is_stored(samples: float):
    """Two of ten clients with 50 samples (25 at half the samples) borrow round(50 / 4) = 12 (6): 12 of 62 (6 of 31)."""
    plain, shards = (dealt(partition=name, samples=samples) for name in ("iid", "iid-overlap0.2x2"))
    assert plain.overlap is None
    assert np.sort(shards.overlap).tolist() == [0] * 8 + [12 / 62] * 2
    for client, (own, indices) in enumerate(zip(plain.indices, shards.indices, strict=True)):
        np.testing.assert_array_equal(own, indices[: len(own)])
        assert len(indices) - len(own) == pytest.approx(shards.overlap[client] * len(indices))
        np.testing.assert_array_equal(np.bincount(LABELS[indices], minlength=6), shards.label_counts[client])
    assert shards.label_counts.sum() == plain.label_counts.sum() + 24 * samples
    np.testing.assert_array_equal(np.unique(np.concatenate(shards.indices)), share_of(LABELS, samples, "train share"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("samples", [1.0, 0.5])
def test_validation_samples_are_set_aside_before_dealing(name: str, samples: float):
    shards, other = (dealt(partition=name, validation=100, samples=samples, seed=seed) for seed in (0, 1))
    assert len(shards.validation) == 100 * samples
    everything = np.concatenate([*shards.indices, shards.validation])
    np.testing.assert_array_equal(np.sort(everything), share_of(LABELS, samples, "train share"))
    assert not np.array_equal(shards.validation, other.validation)
    assert shards.label_counts.sum() == 400 * samples


def test_validation_is_drawn_evenly():
    """Every sample is set aside in 100 of 500 draws, give or take: 400 draws with p = 0.2 deviate by 8; six deviations are room for all."""
    counts = np.zeros(500)
    for seed in range(400):
        counts[dealt(validation=100, seed=seed).validation] += 1
    assert counts.sum() == 400 * 100
    assert np.abs(counts - 80).max() < 48


def test_each_client_holds_out_its_own_share():
    plain, shards = (dealt(partition="dirplain-0.5", holdout=share) for share in (0.0, 0.1))
    held_out = set(shards.validation.tolist())
    for before, after, counts in zip(plain.indices, shards.indices, shards.label_counts, strict=True):
        gone = [sample for sample in before if sample in held_out]
        assert len(gone) == len(before) // 10
        assert after.tolist() == [sample for sample in before if sample not in held_out]
        np.testing.assert_array_equal(counts, np.bincount(LABELS[after], minlength=6))
    assert len(shards.validation) == sum(len(part) // 10 for part in plain.indices)


def test_an_overlap_that_cannot_be_is_one_sentence():
    with pytest.raises(
        UserError, match=r"^partition iid-overlap0.9x9 of toy: a client of 50 samples should borrow 450, but the others hold 50$"
    ):
        dealt(partition="iid-overlap0.9x9")


def test_a_deal_that_fails_is_one_sentence_and_leaves_no_file():
    with pytest.raises(UserError, match=r"^partition classes-5 of toy: class \d has \d+ samples for 200 clients that hold it$"):
        dealt(partition="classes-5", clients=200)
    assert not [path for path in Path().iterdir() if "shards" in path.name]
