"""The prepare stage and its HDF5 file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
import pytest
import torch

from cohort.core.errors import UserError
from cohort.core.hdf5 import new_hdf5
from cohort.data import store
from cohort.data.parsers import PARSERS
from cohort.data.prepare import prepare
from cohort.data.samples import load
from cohort.data.split import Blocks, Parser, Split
from cohort.settings import PlannedFile, plan_file, write_plan

RNG = np.random.default_rng(6)
TRAIN = Split(RNG.integers(0, 256, (30, 3, 6, 5), dtype=np.uint8), RNG.integers(0, 4, 30))
TEST = Split(RNG.integers(0, 256, (7, 3, 6, 5), dtype=np.uint8), RNG.integers(0, 4, 7))
INFO = {"dataset": "noise", "shape": [3, 6, 5], "classes": 4, "train": 30, "test": 7, "scale": 255}
INFO |= {"mean": [0.1, 0.2, 0.3], "std": [1.0, 2.0, 3.0]}


@dataclass(frozen=True, kw_only=True)
class Noise(Parser):
    name: ClassVar[str] = "noise"
    splits: ClassVar[tuple[Split, Split]] = (TRAIN, TEST)
    folders: ClassVar[list[Path]] = []

    def parse(self, folder: Path) -> tuple[Split, Split]:
        self.folders.append(folder)
        return self.splits


@pytest.fixture(autouse=True)
def parser(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PARSERS.by_name, "noise", Noise)
    monkeypatch.setattr(Noise, "folders", [])


def prepared(**changes: Any) -> Path:
    write_plan(PlannedFile("data.h5", "k0123456789ab", INFO | changes, {}, {}))
    prepare(plan_file("k0123456789ab"), "data.h5")
    return Path("data.h5")


def test_what_was_parsed_is_read_back():
    path = prepared()
    assert Noise.folders == [Path("resources/raw/noise")]
    for name, split in (("train", TRAIN), ("test", TEST)):
        record, attrs = store.read(path, name)
        assert record.values.dtype == np.uint8
        assert record.labels.dtype == np.int64
        np.testing.assert_array_equal(record.values, split.values)
        np.testing.assert_array_equal(record.labels, split.labels)
        assert (attrs["dataset"], attrs["classes"], attrs["scale"]) == ("noise", 4, 255)
        assert (list(attrs["mean"]), list(attrs["std"])) == ([0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    labels, groups, classes = store.read_labels(path)
    np.testing.assert_array_equal(labels, TRAIN.labels)
    assert groups is None
    assert classes == 4


@pytest.mark.parametrize("standardized", [None, 2])
def test_mean_and_deviation_are_measured_if_not_given(standardized: int | None):
    attrs = store.read(prepared(mean=None, std=None, standardized=standardized), "test")[1]
    scaled = TRAIN.values / 255
    channels = 3 if standardized is None else standardized
    means, deviations = scaled.mean(axis=(0, 2, 3)), scaled.std(axis=(0, 2, 3))
    np.testing.assert_allclose(attrs["mean"], [*means[:channels], 0][:3], rtol=1e-12)
    np.testing.assert_allclose(attrs["std"], [*deviations[:channels], 1][:3], rtol=1e-12)


def test_a_channel_with_one_value_becomes_zero(monkeypatch: pytest.MonkeyPatch):
    """Division by a deviation of 0 would make every run diverge."""
    values = TRAIN.values.copy()
    values[:, 1] = 77
    monkeypatch.setattr(Noise, "splits", (Split(values, TRAIN.labels), TEST))
    path = prepared(mean=None, std=None)
    attrs = store.read(path, "train")[1]
    varied = values[:, [0, 2]] / 255
    np.testing.assert_allclose(attrs["std"][[0, 2]], varied.std(axis=(0, 2, 3)), rtol=1e-12)
    assert attrs["std"][1] == 1
    samples = load(path, "train", torch.device("cpu"), torch.float64)
    inputs = samples.inputs(torch.arange(30))
    assert inputs[:, 1].abs().max() < 1e-12 and inputs.isfinite().all()


def test_blocks_are_stored_like_an_array_and_equal_data_as_equal_files(
    monkeypatch: pytest.MonkeyPatch,
):
    whole = prepared(mean=None, std=None).read_bytes()
    assert prepared(mean=None, std=None).read_bytes() == whole
    blocks = Blocks(TRAIN.values.shape, lambda: iter(np.array_split(TRAIN.values, 4)))
    monkeypatch.setattr(Noise, "splits", (Split(blocks, TRAIN.labels), TEST))
    assert prepared(mean=None, std=None).read_bytes() == whole
    with h5py.File("data.h5") as file:
        assert (file["train/values"].dtype, file["train/labels"].dtype) == (np.uint8, np.uint16)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (Blocks((30, 3, 6, 5), lambda: iter([TRAIN.values[:20]])), "ends after 20 of 30 samples"),
        (TRAIN.values.astype(np.int64) + 1000, "holds values that are not uint8"),
    ],
)
def test_values_that_are_not_as_declared_are_reported_and_leave_no_file(
    values: Any, sentence: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Noise, "splits", (Split(values, TRAIN.labels), TEST))
    with pytest.raises(UserError, match=f"^noise: train {sentence}$"):
        prepared()
    assert [path.name for path in Path().iterdir()] == ["results"]


def test_prepared_data_of_another_format_is_reported():
    with new_hdf5("data.h5") as file:
        file.attrs["format"] = 1
    for read in (lambda: store.read("data.h5", "train"), lambda: store.read_labels("data.h5")):
        with pytest.raises(UserError, match=r"^data.h5 cannot be read as prepared data \(it is of"):
            read()


@pytest.mark.parametrize("wrong", [{"train": 31}, {"test": 6}, {"shape": [3, 5, 6]}])
def test_a_wrong_count_or_shape_is_reported_and_leaves_no_file(wrong: dict[str, Any]):
    name = "test" if "test" in wrong else "train"
    expected, stored = INFO | wrong, INFO[name]
    with pytest.raises(UserError) as caught:
        prepared(**wrong)
    assert str(caught.value) == (
        f"noise: {name} has {stored} samples of [3, 6, 5] and {stored} labels, "
        f"datasets.yaml expects {expected[name]} of {expected['shape']}"
    )
    assert [path.name for path in Path().iterdir()] == ["results"]  # where the plan file lies
