"""The real digits, against the copy that scikit-learn parses itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_digits

from cohort.cell.planned import PlannedFile, plan_file, write_plan
from cohort.data import store
from cohort.data.download import download
from cohort.data.prepare import prepare
from cohort.data.split import Split
from tests.conftest import ROOT

FACTS = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())["digits"]
THEIRS = load_digits()


@pytest.fixture(scope="module")
def splits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Split]:
    """Downloaded, parsed and stored as config/datasets.yaml says, in a folder of their own."""
    folder = tmp_path_factory.mktemp("digits")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, file in FACTS["files"].items():
            download(file, Path("resources/raw/digits", name))
        write_plan(
            PlannedFile("digits.h5", "k0123456789ab", {"dataset": "digits", **FACTS}, {}, {})
        )
        prepare(plan_file("k0123456789ab"), "digits.h5")
        return {name: store.read("digits.h5", name)[0] for name in ("train", "test")}


def test_sizes(splits: dict[str, Split]):
    assert (len(splits["train"].labels), len(splits["test"].labels)) == (1437, 360)
    assert len(THEIRS.target) == 1797
    assert splits["train"].values.shape == (1437, 1, 8, 8)
    assert splits["test"].values.shape == (360, 1, 8, 8)


def test_both_splits_together_are_scikit_learns_samples(splits: dict[str, Split]):
    ours = [
        (image.tobytes(), label)
        for split in splits.values()
        for image, label in zip(split.values, split.labels, strict=True)
    ]
    theirs = [
        (image.tobytes(), label)
        for image, label in zip(THEIRS.images.astype(np.uint8), THEIRS.target, strict=True)
    ]
    assert sorted(ours) == sorted(theirs)


def test_a_fifth_of_each_class_is_for_testing(splits: dict[str, Split]):
    counts = np.bincount(splits["test"].labels)
    assert (np.abs(counts - np.bincount(THEIRS.target) * 360 / 1797) < 1).all()


def test_classes_add_up_to_scikit_learns_counts(splits: dict[str, Split]):
    train, test = (np.bincount(splits[name].labels, minlength=10) for name in ("train", "test"))
    assert (train + test).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert train.min() > 0
    assert test.min() > 0


def test_pixels_reach_the_scale_and_never_pass_it(splits: dict[str, Split]):
    for split in splits.values():
        assert split.values.dtype == np.uint8
        assert (split.values.min(), split.values.max()) == (0, FACTS["scale"])
