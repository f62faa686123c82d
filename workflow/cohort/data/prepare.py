"""The prepare stage: a data set's raw files, parsed, checked and stored, with what turns their values into numbers for a network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from cohort.cell.planned import frozen
from cohort.core.errors import UserError
from cohort.core.files import sha256
from cohort.core.hdf5 import new_hdf5
from cohort.data.facts import USUAL
from cohort.data.parsers import PARSERS
from cohort.data.split import Blocks, Split
from cohort.data.store import FORMAT

TYPES: dict[str, type[np.integer[Any]]] = {"images": np.uint8, "text": np.uint8, "table": np.int16}
SPLITS = ("train", "test")


def prepare(plan: str | Path, output: str | Path) -> None:
    """Parse a data set's raw files and store them."""
    planned = frozen(plan)
    settings = USUAL | planned.settings
    splits = dict(
        zip(
            SPLITS,
            PARSERS[settings["dataset"]]().parse(Path("resources/raw", settings["dataset"])),
            strict=True,
        )
    )
    for name, split in splits.items():
        _check(settings, name, split)
    raw = {
        name: sha256(path) for name, path in planned.inputs.items()
    }  # not all of them have a checksum that is declared
    with new_hdf5(output) as file:
        facts = {
            key: settings[key]
            for key in ("dataset", "kind", "classes", "groups", "scale", "mean", "std", "generated")
        }
        facts |= {"format": FORMAT, "raw_sha256": json.dumps(raw)}
        file.attrs.update({key: value for key, value in facts.items() if value is not None})
        moments = (
            Moments(settings["shape"][0]) if settings["scale"] and not settings["mean"] else None
        )
        _write(file, "train", splits["train"], TYPES[settings["kind"]], moments)
        _write(file, "test", splits["test"], TYPES[settings["kind"]])
        if moments is not None:
            file.attrs.update(moments.scaled(settings["scale"], settings["standardized"]))


def _check(settings: Mapping[str, Any], name: str, split: Split) -> None:
    """Raise where a parser found something else than config/datasets.yaml says."""
    count, shape = len(split.labels), list(split.values.shape)
    what = f"{settings['dataset']}: {name}"
    if count != settings[name]:
        raise UserError(
            f"{what} has {count} samples, config/datasets.yaml expects {settings[name]}"
        )
    if shape != [count, *settings["shape"]]:
        raise UserError(
            f"{what} has {shape[0]} samples of shape {shape[1:]}, config/datasets.yaml expects {count} of {settings['shape']}"
        )
    for word, numbers, most in (
        ("labels", split.labels, settings["classes"]),
        ("groups", split.groups, settings["groups"]),
    ):
        if (numbers is None) != (most is None):
            raise UserError(
                f"{what} {'lacks' if numbers is None else 'has'} {word}, config/datasets.yaml says otherwise"
            )
        if numbers is not None and (
            len(numbers) != count or numbers.min() < 0 or numbers.max() >= most
        ):
            raise UserError(
                f"{what} has {word} that are not one of 0 to {most - 1} for each sample"
            )


def _write(
    file: h5py.File,
    name: str,
    split: Split,
    dtype: type[np.integer[Any]],
    moments: Moments | None = None,
) -> None:
    values = split.values
    stored, begin = file.create_dataset(f"{name}/values", values.shape, dtype, track_times=False), 0
    for block in values.read() if isinstance(values, Blocks) else [values]:
        if (block.astype(dtype) != block).any():
            raise UserError(
                f"{file.attrs['dataset']}: {name} holds values that are no {np.dtype(dtype).name}"
            )
        stored[begin : begin + len(block)] = block
        begin += len(block)
        if moments is not None:
            moments.add(block)
    if begin != values.shape[0]:
        raise UserError(
            f"{file.attrs['dataset']}: {name} ends after {begin} of {values.shape[0]} samples"
        )
    for word, numbers in (("labels", split.labels), ("groups", split.groups)):
        if numbers is not None:
            file.create_dataset(f"{name}/{word}", data=numbers.astype(np.uint16), track_times=False)


class Moments:
    """Sums over all samples, channel by channel, in exact whole numbers."""

    def __init__(self, channels: int):
        self.count, self.sums, self.squares = (
            0,
            np.zeros(channels, dtype=np.int64),
            np.zeros(channels, dtype=np.int64),
        )

    def add(self, block: np.ndarray) -> None:
        """Count the values of some samples."""
        values = block.reshape(len(block), len(self.sums), -1)
        self.count += len(block) * values.shape[2]
        for channel in range(len(self.sums)):
            part = values[:, channel].astype(np.int64)
            self.sums[channel] += part.sum()
            self.squares[channel] += (part * part).sum()

    def scaled(self, scale: float, standardized: int | None) -> dict[str, list[float]]:
        """Mean and deviation (dividing by n) of the values over `scale`; 0 and 1 for the channels after the first `standardized`."""
        mean, std = np.zeros(len(self.sums)), np.ones(len(self.sums))
        chosen = slice(standardized)
        mean[chosen] = self.sums[chosen] / self.count
        std[chosen] = np.sqrt(self.squares[chosen] / self.count - mean[chosen] ** 2)
        return {
            "mean": (mean / scale).tolist(),
            "std": np.where(np.arange(len(std)) < len(std[chosen]), std / scale, std).tolist(),
        }
