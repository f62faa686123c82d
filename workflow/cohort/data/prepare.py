"""The prepare stage: parse a data set's raw files, check the samples against config/datasets.yaml,
and store them with the scale, means and deviations that standardize them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from cohort.core import UserError, files, hdf5
from cohort.data.parsers import DEFAULTS, PARSERS, parser_name
from cohort.data.split import Blocks, Split
from cohort.data.store import FORMAT
from cohort.settings import read_plan

TYPES: dict[str, type[np.integer[Any]]] = {"images": np.uint8, "text": np.uint8, "table": np.int16}
SPLITS = ("train", "test", "validation")
STORED_KEYS = ("dataset", "kind", "classes", "groups", "scale", "mean", "std")


class Moments:
    """Mean and deviation of each channel, from exact sums of integers."""

    def __init__(self, channels: int):
        self.count = 0
        self.sums, self.squares = np.zeros((2, channels), dtype=np.int64)

    def add(self, block: np.ndarray) -> None:
        """Add the values of a block of samples."""
        values = block.reshape(len(block), len(self.sums), -1)
        self.count += len(block) * values.shape[2]
        self.sums += values.sum(axis=(0, 2), dtype=np.int64)
        self.squares += np.einsum("scv,scv->c", values, values, dtype=np.int64)

    def scaled(self, scale: float, standardized: int | None) -> dict[str, np.ndarray]:
        """Means and deviations (dividing by n) of the values divided by `scale`: 0 and 1 for
        channels behind the first `standardized`. A channel with one value everywhere has the
        deviation 1: it becomes 0, which division by 0 would not."""
        mean = self.sums / self.count
        std = np.sqrt(self.squares / self.count - mean**2) / scale
        if standardized is not None:
            mean[standardized:], std[standardized:] = 0, 1
        std[std == 0] = 1
        return {"mean": mean / scale, "std": std}


def prepare(plan: str | Path, output: str | Path) -> None:
    """Parse the raw files of a plan file's data set, and write the prepared data to `output`."""
    planned = read_plan(plan)
    settings = DEFAULTS | planned.settings
    parser = PARSERS[parser_name(settings["dataset"], settings)]()
    parsed = parser.parse(Path("resources/raw", settings["dataset"]))
    splits = dict(zip(SPLITS, parsed, strict=False))
    for name in SPLITS:
        _check(settings, name, splits.get(name))
    # computed, because files behind a login have no declared checksum
    raw = {name: files.sha256(path) for name, path in planned.inputs.items()}
    attributes = {key: settings[key] for key in STORED_KEYS}
    attributes |= {"format": FORMAT, "raw_sha256": json.dumps(raw)}
    with hdf5.new_hdf5(output) as file:
        file.attrs.update({key: value for key, value in attributes.items() if value is not None})
        is_unknown = settings["scale"] and not settings["mean"]
        moments = Moments(settings["shape"][0]) if is_unknown else None
        for name, split in splits.items():
            _write(file, name, split, TYPES[settings["kind"]], moments if name == "train" else None)
        if moments is not None:
            file.attrs.update(moments.scaled(settings["scale"], settings["standardized"]))


def _check(settings: Mapping[str, Any], name: str, split: Split | None) -> None:
    """Raise UserError if a split is not as datasets.yaml describes it."""
    part = f"{settings['dataset']}: {name}"
    if split is None:
        if settings[name]:
            raise UserError(f"{part} is missing, but datasets.yaml declares it")
        return
    count, shape = len(split.labels), list(split.values.shape)
    if shape != [count, *settings["shape"]] or count != settings[name]:
        wanted = f"datasets.yaml expects {settings[name]} of {settings['shape']}"
        has = f"{shape[0]} samples of {shape[1:]} and {count} labels"
        raise UserError(f"{part} has {has}, {wanted}")
    for key, numbers, limit in (
        ("labels", split.labels, settings["classes"]),
        ("groups", split.groups, settings["groups"]),
    ):
        if numbers is None or limit is None:
            if (numbers is None) != (limit is None):
                verb = "lacks" if numbers is None else "has"
                raise UserError(f"{part} {verb} {key}, contrary to datasets.yaml")
        elif len(numbers) != count or numbers.min() < 0 or numbers.max() >= limit:
            wanted = f"one of 0 to {limit - 1} for each sample"
            raise UserError(f"{part} has {key} that are not {wanted}")


def _write(
    file: h5py.File, name: str, split: Split, dtype: type[np.integer[Any]], moments: Moments | None
) -> None:
    part, values, begin = f"{file.attrs['dataset']}: {name}", split.values, 0
    stored = file.create_dataset(f"{name}/values", values.shape, dtype, track_times=False)
    blocks = values.read() if isinstance(values, Blocks) else [values]
    for block in blocks:
        if (block.astype(dtype) != block).any():
            raise UserError(f"{part} holds values that are not {np.dtype(dtype).name}")
        stored[begin : begin + len(block)] = block
        begin += len(block)
        if moments is not None:
            moments.add(block)
    if begin != values.shape[0]:
        raise UserError(f"{part} ends after {begin} of {values.shape[0]} samples")
    for key, numbers in (("labels", split.labels), ("groups", split.groups)):
        if numbers is not None:
            file.create_dataset(f"{name}/{key}", data=numbers.astype(np.uint16), track_times=False)
