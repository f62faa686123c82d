"""The deal stage turns a plan file and prepared labels into shards."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cohort.core.errors import UserError
from cohort.core.hdf5 import new_hdf5
from cohort.core.paths import digest_in
from cohort.data.sampling import draw_share
from cohort.data.shards import Shards, read
from cohort.data.store import FORMAT
from cohort.partition import Pool, Scheme
from cohort.partition import deal as dealing
from cohort.partition.deal import deal
from cohort.settings import PlannedFile, digest_of, plan_file, shard_identity, write_plan

PER_CLASS = [120, 80, 100, 60, 140]
LABELS = np.random.default_rng(4).permutation(np.repeat(np.arange(5), PER_CLASS))
GROUPS = np.random.default_rng(6).permutation(np.repeat(np.arange(4), [50, 200, 70, 180]))
NAMES = ["iid", "classes-2", "dir-0.5", "dirplain-0.5"]

SETTINGS = {"dataset": "toy", "samples": 1.0, "partition": "iid", "clients": 10, "seed": 0}
SETTINGS |= {"validation": 0, "holdout": 0.0}


@pytest.fixture(autouse=True)
def prepared(empty_folder: Path) -> None:
    """Data of six classes, the last without a sample."""
    with new_hdf5("data.h5") as file:
        file["train/labels"] = LABELS.astype(np.uint16)
        file.attrs.update({"classes": 6, "format": FORMAT})
    with new_hdf5("grouped.h5") as file:
        file["train/labels"] = LABELS.astype(np.uint16)
        file["train/groups"] = GROUPS.astype(np.uint16)
        file.attrs.update({"classes": 6, "groups": 4, "format": FORMAT})


def dealt(data: str = "data.h5", **changes: Any) -> Shards:
    settings = SETTINGS | changes
    digest = digest_of(shard_identity(settings, digest_in(data)), {})
    write_plan(PlannedFile("shards.h5", digest, settings, {}, {"data": data}))
    deal(plan_file(digest), "shards.h5")
    return read("shards.h5")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("samples", [1.0, 0.5])
def test_shards_hold_the_samples_of_the_share(name: str, samples: float):
    """Half of each class, the same for every seed, dealt by their indices in the whole data set."""
    shards = [dealt(partition=name, samples=samples, seed=seed) for seed in (0, 1)]
    for shard in shards:
        expected = draw_share(LABELS, samples, "train share")
        np.testing.assert_array_equal(np.sort(np.concatenate(shard.indices)), expected)
        assert shard.label_counts.sum(axis=0).tolist() == [*np.multiply(samples, PER_CLASS), 0]
        for indices, counts in zip(shard.indices, shard.label_counts, strict=True):
            np.testing.assert_array_equal(np.bincount(LABELS[indices], minlength=6), counts)


def test_the_minimum_of_a_share_is_that_share_of_the_minimum():
    """Half of 500 samples cannot give 30 clients ten each, but five."""
    assert min(map(len, dealt(partition="dir-50", clients=30, samples=0.5).indices)) >= 5


@pytest.mark.parametrize("samples", [1.0, 0.5])
def test_shared_samples_are_counted_and_the_achieved_ratio_is_stored(samples: float):
    """Two of ten clients with 50 samples (25 at half the samples) borrow round(50 / 4) = 12 (6): 12 of 62 (6 of 31)."""
    plain, shards = (dealt(partition=name, samples=samples) for name in ("iid", "iid-overlap0.2x2"))
    assert plain.overlap is None
    assert np.sort(shards.overlap).tolist() == [0] * 8 + [12 / 62] * 2
    for client, (own, indices) in enumerate(zip(plain.indices, shards.indices, strict=True)):
        np.testing.assert_array_equal(own, indices[: len(own)])
        assert len(indices) - len(own) == pytest.approx(shards.overlap[client] * len(indices))
        counts = np.bincount(LABELS[indices], minlength=6)
        np.testing.assert_array_equal(counts, shards.label_counts[client])
    assert shards.label_counts.sum() == plain.label_counts.sum() + 24 * samples
    used = draw_share(LABELS, samples, "train share")
    np.testing.assert_array_equal(np.unique(np.concatenate(shards.indices)), used)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("samples", [1.0, 0.5])
def test_validation_samples_are_set_aside_before_dealing(name: str, samples: float):
    shards, other = (
        dealt(partition=name, validation=100, samples=samples, seed=seed) for seed in (0, 1)
    )
    assert len(shards.validation) == 100 * samples
    everything = np.concatenate([*shards.indices, shards.validation])
    np.testing.assert_array_equal(np.sort(everything), draw_share(LABELS, samples, "train share"))
    assert not np.array_equal(shards.validation, other.validation)
    assert shards.label_counts.sum() == 400 * samples


def test_each_client_holds_out_its_own_share():
    plain, shards = (dealt(partition="dirplain-0.5", holdout=share) for share in (0.0, 0.1))
    held_out = set(shards.validation.tolist())
    clients = zip(plain.indices, shards.indices, shards.label_counts, strict=True)
    for before, after, counts in clients:
        gone = [sample for sample in before if sample in held_out]
        assert len(gone) == len(before) // 10
        assert after.tolist() == [sample for sample in before if sample not in held_out]
        np.testing.assert_array_equal(counts, np.bincount(LABELS[after], minlength=6))
    assert len(shards.validation) == sum(len(part) // 10 for part in plain.indices)


@pytest.mark.parametrize(
    "name", ["iid-overlap0.2x2", "dirplain-0.5-overlap0.1+0.3", "classes-2-overlap0.2x2-replace"]
)
@pytest.mark.parametrize("seed", range(3))
def test_no_held_out_sample_is_trained_on_by_another_client(name: str, seed: int):
    """A client borrows its ratio of what it trains on, and only training samples of others."""
    shards = dealt(partition=name, holdout=0.2, seed=seed)
    without = dealt(partition=name.partition("-overlap")[0], holdout=0.2, seed=seed)
    assert not np.isin(np.concatenate(shards.indices), shards.validation).any()
    assert len(np.unique(shards.validation)) == len(shards.validation) > 80
    for held_out, expected in zip(shards.holdouts, without.holdouts, strict=True):
        np.testing.assert_array_equal(held_out, expected)
    replaces = name.endswith("replace")
    for client in np.flatnonzero(shards.overlapping()):
        own, holds = without.indices[client], shards.indices[client]
        ratio = shards.overlap[client]
        amount = round(ratio * len(holds))
        assert len(holds) == len(own) + (0 if replaces else amount)
        assert np.isin(holds, own).sum() == len(holds) - amount
        assert min(abs(ratio - other) for other in (0.1, 0.2, 0.3)) < 1 / len(own)


def test_at_a_ratio_of_zero_holding_out_before_borrowing_changes_nothing():
    """The digests of such shards therefore stay."""
    plain, shards = (dealt(partition=name, holdout=0.2) for name in ("iid", "iid-overlap0x2"))
    for ours, theirs in zip(shards.indices, plain.indices, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_failed_deal_is_a_user_error_and_leaves_no_file():
    with pytest.raises(
        UserError,
        match=r"^partition classes-5 of toy: class \d has \d+ samples for 200 clients that hold it$",
    ):
        dealt(partition="classes-5", clients=200)
    assert not [path for path in Path().iterdir() if "shards" in path.name]


def test_clients_that_hold_a_role_together_share_all_of_it():
    """Roles of 200, 180, 70 and 50. Three clients of one role each hold the three largest, nothing
    is shared and the last is left out; five hold 200, 180, 70, 50 and the first again. Two of two
    each hold 200 + 70 and 180 + 50."""
    three, five, two = (
        dealt("grouped.h5", partition=name, clients=clients)
        for name, clients in (("roles-1", 3), ("roles-1", 5), ("roles-2", 2))
    )
    assert three.overlap is None and three.label_counts.sum(axis=1).tolist() == [200, 180, 70]
    np.testing.assert_array_equal(
        np.sort(np.concatenate(three.indices)), np.flatnonzero(GROUPS != 0)
    )
    assert five.overlap.tolist() == [1, 0, 0, 0, 1]
    np.testing.assert_array_equal(np.sort(five.indices[0]), np.sort(five.indices[4]))
    assert two.overlap is None and two.label_counts.sum(axis=1).tolist() == [270, 230]


def test_the_overlap_of_roles_is_the_share_of_a_clients_samples_that_others_hold_too():
    """Three clients with two of 200, 180, 70 and 50: the first and fourth, the second and first, the third and second."""
    shards = dealt("grouped.h5", partition="roles-2", clients=3)
    assert shards.label_counts.sum(axis=1).tolist() == [250, 380, 250]
    assert shards.overlap.tolist() == pytest.approx([200 / 250, 380 / 380, 180 / 250])


@pytest.mark.parametrize("name", ["domains-2", "onedomain-3", "dirdomains-0.5", "roles-2"])
def test_groups_are_those_of_the_remaining_samples(name: str):
    """Half of each class less 30 samples set aside: what is dealt by groups are those samples, by their own groups."""
    shards = dealt("grouped.h5", partition=name, clients=6, samples=0.5, validation=60)
    left = np.setdiff1d(draw_share(LABELS, 0.5, "train share"), shards.validation)
    assert len(shards.validation) == 30
    np.testing.assert_array_equal(np.unique(np.concatenate(shards.indices)), left)
    groups = [set(GROUPS[part].tolist()) for part in shards.indices]
    if name == "onedomain-3":
        assert groups[0] == {3} and set.union(*groups[1:]) == {0, 1, 2}
    elif name != "dirdomains-0.5":
        assert all(len(held) == 2 for held in groups)


def test_a_client_without_samples_has_an_empty_shard():
    shards = dealt(partition="dirplain-0.01-minimum0", clients=60)
    sizes = [len(indices) for indices in shards.indices]
    assert min(sizes) == 0 and sum(sizes) == len(LABELS)
    assert shards.label_counts.sum(axis=1).tolist() == sizes
    lent = dealt(partition="dirplain-0.01-minimum0-overlap0.1x30-replace", clients=60)
    assert [len(indices) for indices in lent.indices] == sizes and np.isfinite(lent.overlap).all()


def test_who_overlaps_is_kept_even_at_a_ratio_of_zero():
    borrowing, without = dealt(partition="iid-overlap0.2x2"), dealt(partition="iid-overlap0x2")
    assert without.overlap is None and without.overlapping().sum() == 2
    np.testing.assert_array_equal(borrowing.overlapping(), without.overlapping())
    np.testing.assert_array_equal(borrowing.overlap > 0, borrowing.overlapping())
    assert not dealt(partition="iid").overlapping().any()


HALVES = [np.arange(0, 500, 2), np.arange(1, 500, 2)]
UNSIGNED = [part.astype(np.uint64) for part in HALVES]
WRONG = [
    (HALVES[:1], "deal returned 1 parts for 2 clients"),
    ([part % 2 == 0 for part in HALVES], r"deal returned bool of shape \(250,\), not a row of .*"),
    ([part / 2 for part in HALVES], r"deal returned float64 of shape \(250,\), not a row of .*"),
    ([HALVES[0], HALVES[1] + 1], "deal gave client 1 numbers from 2 to 500, but .* 500 samples"),
    ([HALVES[0] - 1, HALVES[1]], "deal gave client 0 numbers from -1 to 497, but .* 500 samples"),
    ([HALVES[0], HALVES[1] - 1], "deal gave sample 0 to 2 clients, but is `exact`"),
    ([HALVES[0], HALVES[1][1:]], "deal gave sample 1 to 0 clients, but is `exact`"),
]


def test_an_empty_part_of_python_numbers(monkeypatch: pytest.MonkeyPatch):
    """NumPy takes it for floats. Where schemes may share samples, it shares none."""
    for is_exact in (True, False):
        own = {"name": "all", "exact": is_exact, "deal": lambda *_: [[*range(500)], []]}
        monkeypatch.setattr(
            dealing, "parse_partition", lambda _, own=own: type("All", (Scheme,), own)()
        )
        shards = dealt(clients=2, partition="all")
        assert len(shards.indices[1]) == 0 and shards.overlap is None


@pytest.mark.parametrize(
    ("answer", "sentence"), [*WRONG, ([*map(list, HALVES)], ""), (UNSIGNED, "")]
)
def test_what_a_scheme_deals_is_checked(
    answer: Any, sentence: str, monkeypatch: pytest.MonkeyPatch
):
    class Halves(Scheme):
        name = "halves"

        def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Any:
            return answer

    monkeypatch.setattr(dealing, "parse_partition", lambda name: Halves())
    if not sentence:
        assert dealt(clients=2, partition="halves").indices[1].tolist() == [*range(1, 500, 2)]
        return
    with pytest.raises(UserError, match=f"^partition halves of toy: {sentence}$"):
        dealt(clients=2, partition="halves")
