"""What a partition looks like before anything is trained on it: `cohort shards`."""

from __future__ import annotations

from typing import Any

import numpy as np

from cohort.commands.run import make_data
from cohort.data.sampling import scaled_count
from cohort.data.shards import Shards
from cohort.data.store import read_labels
from cohort.partition import parse_name
from cohort.partition.deal import dealt
from cohort.plan import Plan
from cohort.selection.entropy import entropy_bits

MOST_CLIENTS = MOST_CLASSES = 30


def print_shards(plan: Plan, settings: dict[str, Any]) -> None:
    """Deal as the workflow would and print sizes, classes, groups, label entropy, overlap and what nobody holds; of a small federation
    every label count."""
    planned = plan.shards_of(settings, "cohort shards")
    data = planned.inputs["data"]
    make_data(plan, data)
    shards = dealt(planned.settings, data)
    labels, groups, _ = read_labels(data)
    counts = shards.label_counts
    clients, classes = counts.shape
    print(
        f"{settings['partition']} of {settings['dataset']}, seed {settings['seed']}: {clients} clients, {classes} classes"
    )
    print(f"{'':20}{'lowest':>8}{'median':>8}{'highest':>8}")
    _print_spread("samples per client", counts.sum(axis=1))
    _print_spread("classes per client", (counts > 0).sum(axis=1))
    if groups is not None:
        _print_spread(
            "groups per client", np.array([len(np.unique(groups[part])) for part in shards.indices])
        )
    entropy = entropy_bits(counts).mean() + 0.0  # not -0
    print(
        f"label entropy: {entropy:.2f} bits in the mean over clients; {np.log2(classes):.2f} is every class alike"
    )
    verb = "borrowing" if parse_name(settings["partition"]).exact else "sharing"
    print(f"overlapping clients: {_overlap(shards, verb)}")
    left_out = scaled_count(len(labels), settings["samples"]) - len(
        np.union1d(np.concatenate(shards.indices), shards.validation)
    )
    if left_out:
        print(f"samples that nobody holds: {left_out}")
    if len(shards.validation):
        print(f"samples set aside for validation: {len(shards.validation)}")
    print()
    if clients <= MOST_CLIENTS and classes <= MOST_CLASSES:
        _print_counts(shards, "borrowed" if verb == "borrowing" else "shared")
    else:
        print(
            f"The label counts are printed for up to {MOST_CLIENTS} clients and {MOST_CLASSES} classes."
        )


def _print_spread(name: str, values: np.ndarray) -> None:
    print(f"{name:20}{values.min():>8}{np.median(values):>8g}{values.max():>8}")


def _overlap(shards: Shards, verb: str) -> str:
    if shards.overlap is None:
        return "0"
    shares = shards.overlap[shards.overlap > 0]
    return f"{len(shares)}, {verb} {shares.min():.1%} to {shares.max():.1%} of their samples"


def _print_counts(shards: Shards, title: str) -> None:
    counts = shards.label_counts
    width = len(str(counts.max())) + 1
    overlap = shards.overlap if shards.overlap is not None else np.zeros(len(counts))
    print(
        f"client samples {title:>8} {'class':>{width}}"
        + "".join(f"{label:>{width}}" for label in range(counts.shape[1]))
    )
    for client, row in enumerate(counts):
        cells = "".join(f"{count or '.':>{width}}" for count in row)
        print(
            f"{client:>6}{row.sum():>8}{f'{overlap[client]:.1%}' if overlap[client] else '-':>9} {'':{max(width, 5)}}{cells}"
        )
