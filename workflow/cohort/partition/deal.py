"""The deal stage: a partition applied to a data set's training labels, stored with the label counts of every client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cohort.cell.planned import frozen
from cohort.core.errors import UserError
from cohort.core.hdf5 import new_hdf5, sealed_hdf5
from cohort.core.randomness import generator
from cohort.data.sampling import scaled_count, share_of
from cohort.data.store import read_labels

RARE = 1e-3  # of all samples: a class with fewer may be lost in a share of them, such as a digit in a play


@dataclass(frozen=True)
class Shards:
    """For each client the indices of its training samples, how many it has of each class, and which share of its samples lies at another
    client too: of those that it was dealt, or, under an overlap, only those that it borrows (None where there are none). `validation` was
    set aside, by the server or by clients."""

    indices: list[np.ndarray]
    label_counts: np.ndarray
    overlap: np.ndarray | None = None
    validation: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    holdouts: list[np.ndarray] = field(default_factory=list)
    """What each client holds out of its own samples, which `validation` ends with."""


def deal(plan: str | Path, output: str | Path) -> None:
    """Deal a data set to clients as its plan file says."""
    planned = frozen(plan)
    shards = dealt(planned.settings, planned.inputs["data"])
    with new_hdf5(output) as file:
        file["indices"] = np.concatenate(shards.indices)
        file["sizes"] = np.array([len(part) for part in shards.indices])
        file["label_counts"] = shards.label_counts
        if shards.overlap is not None:
            file["overlap"] = shards.overlap
        if len(shards.validation):
            file["validation"] = shards.validation
        if shards.holdouts:
            file["holdout_sizes"] = np.array([len(part) for part in shards.holdouts])


def dealt(settings: Mapping[str, Any], data: str | Path) -> Shards:
    """The shards of these settings, from prepared data."""
    from cohort.partition import Pool, parse_name

    labels, groups, classes = read_labels(data)
    used = share_of(labels, settings["samples"], "train share")
    kept, all_counts = (np.bincount(these, minlength=classes) for these in (labels[used], labels))
    if ((kept == 0) & (all_counts >= RARE * len(labels))).any():
        raise UserError(
            f"{settings['samples']:g} of {settings['dataset']} leaves a class without a sample; take a larger share"
        )
    seed = settings["seed"]
    used, validation = _set_aside(
        used,
        scaled_count(settings["validation"], settings["samples"]),
        generator(seed, "validation"),
    )
    scheme = parse_name(settings["partition"]).scaled(settings["samples"])
    rng = generator(seed, "partition")
    try:
        parts = scheme.deal(
            Pool(labels[used], None if groups is None else groups[used]), settings["clients"], rng
        )
        own, borrowed = scheme.borrow(parts, rng)
    except ValueError as error:
        raise UserError(
            f"partition {settings['partition']} of {settings['dataset']}: {error}"
        ) from None
    held = [used[np.concatenate(both)] for both in zip(own, borrowed, strict=True)]
    shares = np.array(
        [len(extra) / max(len(part), 1) for extra, part in zip(borrowed, held, strict=True)]
    )
    if not scheme.exact:
        holders = np.bincount(np.concatenate(held), minlength=len(labels))
        shares = np.array([(holders[part] > 1).mean() for part in held])
    holdouts: list[np.ndarray] = []
    for client, part in enumerate(held if settings["holdout"] else []):
        held[client], aside = _set_aside(
            part, int(settings["holdout"] * len(part)), generator(seed, "holdout", client=client)
        )
        holdouts.append(aside)
    counts = np.stack([np.bincount(labels[part], minlength=classes) for part in held])
    overlap, set_aside = shares if shares.any() else None, np.concatenate([validation, *holdouts])
    return Shards(held, counts, overlap, set_aside, holdouts)


def _set_aside(
    samples: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """What is kept, in its order, and `count` samples drawn evenly."""
    if not count:
        return samples, samples[:0]
    aside = np.zeros(len(samples), dtype=bool)
    aside[rng.permutation(len(samples))[:count]] = True
    return samples[~aside], samples[aside]


def read(path: str | Path) -> Shards:
    """Read dealt shards back."""
    try:
        with sealed_hdf5(path) as file:
            cuts = np.cumsum(file["sizes"][:])[:-1]
            overlap = file["overlap"][:] if "overlap" in file else None
            validation = (
                file["validation"][:] if "validation" in file else np.empty(0, dtype=np.int64)
            )
            indices, counts = np.split(file["indices"][:], cuts), file["label_counts"][:]
            sizes = file["holdout_sizes"][:] if "holdout_sizes" in file else []
            own = validation[len(validation) - sum(sizes) :]
            holdouts = np.split(own, np.cumsum(sizes)[:-1]) if len(sizes) else []
            return Shards(indices, counts, overlap, validation, holdouts)
    except FileNotFoundError:
        raise UserError(f"{path} is not there; start again: it is dealt anew") from None
    except Exception as error:  # a file that was not written here may raise anything
        reason = " ".join(str(error).split())
        raise UserError(
            f"{path} cannot be read as shards ({reason}); delete it and start again: it is dealt anew"
        ) from None
