"""The deal stage: apply a partition to a data set's training labels and store the shards."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cohort.core.components import explain_value_errors
from cohort.core.errors import UserError
from cohort.core.paths import digest_in
from cohort.core.randomness import generator
from cohort.data.sampling import draw_share, scaled_count
from cohort.data.shards import Shards, write
from cohort.data.store import read_labels
from cohort.partition.schemes import Parts, Pool, Rng, parse_partition
from cohort.settings import check_digest, read_plan, shard_identity

RARE = 1e-3  # a class with a smaller share of all samples may be lost, such as a digit in a play


def deal(plan: str | Path, output: str | Path) -> None:
    """Deal the data set that a plan file names, and write the shards to `output`."""
    planned = read_plan(plan)
    check_digest(
        planned, lambda plan: shard_identity(plan.settings, digest_in(plan.inputs["data"]))
    )
    write(output, deal_data(planned.settings, planned.inputs["data"]))


def deal_data(settings: Mapping[str, Any], data: str | Path) -> Shards:
    """Deal the samples of a prepared data set to clients, as these settings of a cell say."""
    labels, groups, classes = read_labels(data)
    seed = settings["seed"]
    used = draw_share(labels, settings["samples"], "train share")
    remaining, before = (np.bincount(part, minlength=classes) for part in (labels[used], labels))
    if ((remaining == 0) & (before >= RARE * len(labels))).any():
        share = f"{settings['samples']:g} of {settings['dataset']}"
        raise UserError(f"{share} leaves a class without a sample; take a larger share")
    count = scaled_count(settings["validation"], settings["samples"])
    used, validation = _set_aside(used, count, generator(seed, "validation"))
    scheme = parse_partition(settings["partition"]).scaled(settings["samples"])
    rng = generator(seed, "partition")
    pool = Pool(labels[used], None if groups is None else groups[used])
    with explain_value_errors(f"partition {settings['partition']} of {settings['dataset']}: "):
        dealt = scheme.deal(pool, settings["clients"], rng)
        whole = _checked(dealt, settings["clients"], len(used), scheme.exact)
        training, holdouts = _split_holdout(whole, settings["holdout"], seed)
        retained, borrowed, borrowers = scheme.borrow(training, rng)
    shards = [used[np.concatenate(parts)] for parts in zip(retained, borrowed, strict=True)]
    if scheme.exact:  # the share of what each client trains on that it borrowed
        pairs = zip(borrowed, shards, strict=True)
        shares = np.array([len(extra) / max(len(part), 1) for extra, part in pairs])
    else:  # the share of what each client was dealt that another was dealt too
        holders = np.bincount(np.concatenate(whole))
        shares = np.array([(holders[part] > 1).sum() / max(len(part), 1) for part in whole])
    counts = np.stack([np.bincount(labels[part], minlength=classes) for part in shards])
    holdouts = [used[part] for part in holdouts]
    overlap, set_aside = shares if shares.any() else None, np.concatenate([validation, *holdouts])
    return Shards(shards, counts, overlap, set_aside, holdouts, borrowers)


def _checked(dealt: Any, clients: int, samples: int, exact: bool) -> Parts:
    """Return what a scheme dealt. Raise ValueError unless it is a row of indices for each client
    and, if the scheme is exact, has each sample once."""
    parts = [np.asarray(part) for part in dealt]
    if len(parts) != clients:
        raise ValueError(f"deal returned {len(parts)} parts for {clients} clients")
    for client, part in enumerate(parts):
        if part.ndim != 1 or (part.dtype.kind not in "iu" and part.size):
            form = f"{part.dtype} of shape {part.shape}, not a row of sample numbers"
            raise ValueError(f"deal returned {form}, for client {client}")
        if part.size and not 0 <= part.min() <= part.max() < samples:
            numbers = f"numbers from {part.min()} to {part.max()}, but there are {samples} samples"
            raise ValueError(f"deal gave client {client} {numbers}")
    parts = [part.astype(np.int64) for part in parts]
    counts = np.bincount(np.concatenate(parts), minlength=samples)
    if exact and (counts != 1).any():
        sample = np.flatnonzero(counts != 1)[0]
        raise ValueError(f"deal gave sample {sample} to {counts[sample]} clients, but is `exact`")
    return parts


def _split_holdout(parts: Parts, share: float, seed: int) -> tuple[Parts, Parts]:
    """Split each client's part into training and held-out samples, before any client borrows: no
    held-out sample of one client is then trained on by another. No share, no held-out parts."""
    if not share:
        return parts, []
    pairs = [
        _set_aside(part, int(share * len(part)), generator(seed, "holdout", client=client))
        for client, part in enumerate(parts)
    ]
    return [training for training, _ in pairs], [aside for _, aside in pairs]


def _set_aside(samples: np.ndarray, count: int, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    """Hold out `count` samples at random: return the others in their order, and the held-out."""
    if not count:
        return samples, samples[:0]
    aside = np.zeros(len(samples), dtype=bool)
    aside[rng.permutation(len(samples))[:count]] = True
    return samples[~aside], samples[aside]
