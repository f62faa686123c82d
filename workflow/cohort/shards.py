"""The deal stage: a partition applied to a data set's training labels, stored with the label counts of every client."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from cohort.cell import frozen
from cohort.data.sampling import share_of
from cohort.data.store import read_labels
from cohort.errors import UserError
from cohort.files import replacing
from cohort.partition import parse_name
from cohort.randomness import generator


@dataclass(frozen=True)
class Shards:
    """For each client the indices of its training samples, and how many it has of each class."""

    indices: list[np.ndarray]
    label_counts: np.ndarray


def deal(plan: str | Path, output: str | Path) -> None:
    """Deal a data set to clients as its plan file says."""
    planned = frozen(plan)
    settings = planned.settings
    labels, classes = read_labels(planned.inputs["data"])
    used = share_of(labels, settings["samples"], "train share")
    if len(np.unique(labels[used])) < len(np.unique(labels)):
        raise UserError(f"{settings['samples']:g} of {settings['dataset']} leaves a class without a sample; take a larger share")
    scheme = parse_name(settings["partition"]).scaled(settings["samples"])
    try:
        parts = scheme.deal(labels[used], settings["clients"], generator(settings["seed"], "partition"))
    except ValueError as error:
        raise UserError(f"partition {settings['partition']} of {settings['dataset']}: {error}") from None
    counts = np.stack([np.bincount(labels[used[part]], minlength=classes) for part in parts])
    with replacing(output) as temporary, h5py.File(temporary, "w") as file:
        file["indices"] = np.concatenate([used[part] for part in parts])
        file["sizes"] = np.array([len(part) for part in parts])
        file["label_counts"] = counts


def read(path: str | Path) -> Shards:
    """Read dealt shards back."""
    with h5py.File(path) as file:
        cuts = np.cumsum(file["sizes"][:])[:-1]
        return Shards(np.split(file["indices"][:], cuts), file["label_counts"][:])
