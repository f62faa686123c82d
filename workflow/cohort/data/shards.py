"""Shards, the result of a partition, and the HDF5 files that hold them."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cohort.core.hdf5 import SealedFile, new_hdf5
from cohort.core.sealed_json import explain_unreadable


@dataclass(frozen=True)
class Shards:
    """How a partition splits the training samples of a data set among clients."""

    indices: list[np.ndarray]
    """For each client, the indices of its samples."""

    label_counts: np.ndarray
    """Samples per client (rows) and class (columns)."""

    overlap: np.ndarray | None = None
    """For each client, the share of its samples that other clients hold too; under an overlap, only
    those that it borrows. None if no client has any."""

    validation: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Samples that the server or clients set aside for validation."""

    holdouts: list[np.ndarray] = field(default_factory=list)
    """For each client, the samples it holds out of its own, with which `validation` ends; empty if
    none does, or if the shards are of a version that did not say."""

    borrowers: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The clients that an overlap chose to borrow samples, even if its ratio is 0; empty without
    one, or if the shards are of a version that did not say."""

    def overlapping(self) -> np.ndarray:
        """Whether each client overlaps with others (client)."""
        shares = np.zeros(len(self.indices)) if self.overlap is None else self.overlap
        overlapping = shares > 0
        overlapping[self.borrowers] = True
        return overlapping


def write(path: str | Path, shards: Shards) -> None:
    """Write shards to a file, which takes its name only if all of it was written."""
    with new_hdf5(path) as file:
        file["indices"] = np.concatenate(shards.indices)
        file["sizes"] = np.array([len(part) for part in shards.indices])
        file["label_counts"] = shards.label_counts
        if shards.overlap is not None:
            file["overlap"] = shards.overlap
        if len(shards.validation):
            file["validation"] = shards.validation
        if len(shards.borrowers):
            file["chosen"] = shards.borrowers
        if shards.holdouts:
            file["holdout_sizes"] = np.array([len(part) for part in shards.holdouts])


def read(path: str | Path) -> Shards:
    """Read shards; UserError if the file is missing or damaged."""
    with explain_unreadable(path, "shards"), SealedFile(path) as file:
        arrays = file.arrays()
        nothing = np.empty(0, dtype=np.int64)
        validation = arrays.get("validation", nothing)
        sizes = arrays.get("holdout_sizes", nothing)
        held_out = validation[len(validation) - sizes.sum() :]
        return Shards(
            np.split(arrays["indices"], np.cumsum(arrays["sizes"])[:-1]),
            arrays["label_counts"],
            arrays.get("overlap"),
            validation,
            np.split(held_out, np.cumsum(sizes)[:-1]) if len(sizes) else [],
            arrays.get("chosen", nothing),
        )
