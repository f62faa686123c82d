"""The prepare stage and its HDF5 file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
import pytest

from cohort.cell import Planned, freeze, plan_file
from cohort.data import store
from cohort.data.parsers import PARSERS
from cohort.data.parsers.parser import Parser, Split
from cohort.errors import UserError

RNG = np.random.default_rng(6)
TRAIN = Split(RNG.integers(0, 256, (30, 3, 6, 5), dtype=np.uint8), RNG.integers(0, 4, 30))
TEST = Split(RNG.integers(0, 256, (7, 3, 6, 5), dtype=np.uint8), RNG.integers(0, 4, 7))
FACTS = {
    "dataset": "noise",
    "shape": [3, 6, 5],
    "classes": 4,
    "train": 30,
    "test": 7,
    "scale": 255,
    "mean": [0.1, 0.2, 0.3],
    "std": [1.0, 2.0, 3.0],
}


@dataclass(frozen=True, kw_only=True)
class Noise(Parser):
    name: ClassVar[str] = "noise"
    splits: ClassVar[tuple[Split, Split]] = (TRAIN, TEST)
    folders: ClassVar[list[Path]] = []

    def parse(self, folder: Path) -> tuple[Split, Split]:
        self.folders.append(folder)
        return self.splits


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(PARSERS, "noise", Noise)
    monkeypatch.setattr(Noise, "folders", [])


def prepared(**changes: Any) -> Path:
    freeze(Planned("data.h5", "k0123456789ab", FACTS | changes, {}, {}))
    store.prepare(plan_file("k0123456789ab"), "data.h5")
    return Path("data.h5")


def test_what_was_parsed_is_read_back():
    path = prepared()
    assert Noise.folders == [Path("resources/raw/noise")]
    for name, split in (("train", TRAIN), ("test", TEST)):
        found, facts = store.read(path, name)
        assert found.values.dtype == np.uint8
        assert found.labels.dtype == np.int64
        np.testing.assert_array_equal(found.values, split.values)
        np.testing.assert_array_equal(found.labels, split.labels)
        assert (facts["dataset"], facts["classes"], facts["scale"]) == ("noise", 4, 255)
        assert (list(facts["mean"]), list(facts["std"])) == ([0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    labels, classes = store.read_labels(path)
    np.testing.assert_array_equal(labels, TRAIN.labels)
    assert classes == 4


def test_images_are_stored_as_bytes_and_the_same_data_as_the_same_file():
    with h5py.File(prepared()) as file:
        assert file["train/images"].dtype == np.uint8
        assert file["train/labels"].dtype == np.uint16
    first = Path("data.h5").read_bytes()
    assert prepared().read_bytes() == first


CHUNKS = {
    "small images: all in one": ((40, 1, 8, 8), (40, 1, 8, 8)),
    "a megabyte holds six of 150,528 bytes": ((8, 3, 224, 224), (6, 3, 224, 224)),
    "one is larger than a megabyte": ((2, 1, 1100, 1000), (1, 1, 1100, 1000)),
}


@pytest.mark.parametrize("case", CHUNKS)
def test_chunks_hold_whole_images_and_at_most_a_megabyte(case: str, monkeypatch: pytest.MonkeyPatch):
    shape, chunks = CHUNKS[case]
    split = Split(np.zeros(shape, dtype=np.uint8), np.zeros(shape[0], dtype=np.int64))
    monkeypatch.setattr(Noise, "splits", (split, split))
    with h5py.File(prepared(shape=list(shape[1:]), train=shape[0], test=shape[0])) as file:
        assert file["train/images"].chunks == chunks
        assert file["test/images"].chunks == chunks


@pytest.mark.parametrize(("split", "expected", "found"), [("train", 31, 30), ("test", 6, 7)])
def test_a_wrong_count_is_one_sentence_and_leaves_no_file(split: str, expected: int, found: int):
    with pytest.raises(UserError) as caught:
        prepared(**{split: expected})
    assert str(caught.value) == f"noise: {found} {split} samples, config/datasets.yaml expects {expected}"
    assert [path.name for path in Path().iterdir()] == ["results"]  # where the plan file lies


def test_a_wrong_shape_is_one_sentence_and_leaves_no_file():
    with pytest.raises(UserError) as caught:
        prepared(shape=[3, 5, 6])
    assert str(caught.value) == "noise: train images are of shape [3, 6, 5], config/datasets.yaml expects [3, 5, 6]"
    assert [path.name for path in Path().iterdir()] == ["results"]
