"""The prepare stage and its HDF5 store: uint8 images and labels of both splits, with what turns them into numbers for a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from cohort.cell import frozen
from cohort.data.parsers import PARSERS
from cohort.data.parsers.parser import Split
from cohort.errors import UserError
from cohort.files import replacing

CHUNK_BYTES = 1 << 20


def prepare(plan: str | Path, output: str | Path) -> None:
    """Parse a data set's raw files and store them."""
    settings = frozen(plan).settings
    train, test = PARSERS[settings["dataset"]]().parse(Path("resources/raw", settings["dataset"]))
    for name, split in (("train", train), ("test", test)):
        if len(split.labels) != settings[name]:
            raise UserError(f"{settings['dataset']}: {len(split.labels)} {name} samples, config/datasets.yaml expects {settings[name]}")
        if split.images.dtype != np.uint8 or not np.isin(split.labels, np.arange(settings["classes"])).all():
            raise UserError(
                f"{settings['dataset']}: {name} holds images that are no bytes, or labels outside 0 to {settings['classes'] - 1}"
            )
        if list(split.images.shape[1:]) != settings["shape"]:
            found = list(split.images.shape[1:])
            raise UserError(f"{settings['dataset']}: {name} images are of shape {found}, config/datasets.yaml expects {settings['shape']}")
    with replacing(output) as temporary, h5py.File(temporary, "w") as file:
        file.attrs.update({key: settings[key] for key in ("dataset", "classes", "scale", "mean", "std")})
        _write(file, "train", train)
        _write(file, "test", test)


def read(path: str | Path, split: str) -> tuple[Split, dict[str, Any]]:
    """One split, each array in one read, and the data set's facts."""
    with h5py.File(path) as file:
        return Split(file[f"{split}/images"][:], file[f"{split}/labels"][:].astype(np.int64)), dict(file.attrs)


def read_labels(path: str | Path) -> tuple[np.ndarray, int]:
    """The training labels and the number of classes: all that dealing needs."""
    with h5py.File(path) as file:
        return file["train/labels"][:].astype(np.int64), int(file.attrs["classes"])


def _write(file: h5py.File, name: str, split: Split) -> None:
    rows = max(1, CHUNK_BYTES // max(1, split.images[0].nbytes))
    chunks = (min(rows, len(split.images)), *split.images.shape[1:])
    file.create_dataset(f"{name}/images", data=split.images, chunks=chunks, track_times=False)
    file.create_dataset(f"{name}/labels", data=split.labels.astype(np.uint16), track_times=False)
