"""`python -m tools.handoffs [--out FILE]`: how many tasks and transfers of the model Stratify's
chunks of labels save, and how they spread over more clients. Nothing is trained.

Naive is one client for each scheduled label, drawn from all that hold the label.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.tables import table
from cohort.core.randomness import generator
from cohort.partition import Pool, parse_partition
from cohort.training.procedures.stratified import StratifiedSingle
from cohort.training.procedures.stratified.label_schedule import (
    ClientData,
    label_frequencies,
    schedule_single_samples,
    shuffled_labels,
)

LABELS = np.repeat(np.arange(10), 5000)  # CIFAR-10's
SCHEME, RETAINED = "dir-0.5", StratifiedSingle().retained
PARTITIONS = 10
CASES = [(10, 1), (10, 5), (10, 50), (10, 150), (20, 5), (50, 5), (100, 5)]
"""Clients, and labels in a chunk."""


def deal_labels(partition: str, labels: np.ndarray, clients: int, seed: int) -> ClientData:
    """Deal samples with these labels to clients, drawn as for a cell with this seed."""
    parts = parse_partition(partition).deal(Pool(labels), clients, generator(seed, "partition"))
    counts = [np.bincount(labels[part], minlength=labels.max() + 1) for part in parts]
    return ClientData(parts, labels, np.stack(counts, axis=1))


def naive_transfers(counts: np.ndarray, rng: np.random.Generator) -> int:
    """Count how often the model changes hands in an epoch if each scheduled label goes to any
    client that holds it. `counts` has a row for each label and a column for each client."""
    labels = np.array(shuffled_labels(label_frequencies(counts), rng))
    clients = np.empty_like(labels)
    for label, held in enumerate(counts):
        places = labels == label
        clients[places] = rng.choice(np.flatnonzero(held), np.count_nonzero(places))
    return int(np.count_nonzero(np.diff(clients)))


def measure_handoffs(
    labels: np.ndarray, cases: Iterable[tuple[int, int]], partitions: int
) -> pd.DataFrame:
    """Count each partition's tasks and transfers in the first epoch, and what they save."""
    rows = []
    for clients, chunk in cases:
        for seed in range(partitions):
            data, rng = (
                deal_labels(SCHEME, labels, clients, seed),
                generator(seed, "label schedule", round=1),
            )
            epoch = schedule_single_samples(data, rng, chunk=chunk, retained=RETAINED)
            naive = naive_transfers(data.counts, generator(seed, "naive", round=1))
            counted = len(epoch.samples), len(epoch.tasks), epoch.transfers, naive
            rows.append((clients, chunk, seed, *counted))
    names = "clients", "chunk", "partition", "labels", "tasks", "transfers", "naive_transfers"
    measurements = pd.DataFrame(rows, columns=names)
    return measurements.assign(
        tasks_saved=1 - measurements["tasks"] / measurements["labels"],
        transfers_saved=1 - measurements["transfers"] / measurements["naive_transfers"],
        transfers_per_client=measurements["transfers"] / measurements["clients"],
    )


def summary(measurements: pd.DataFrame) -> str:
    """Format means and standard deviations over the partitions as a Markdown table."""
    titles = ["clients", "chunk", "tasks saved (%)", "transfers saved (%)"]
    titles += ["transfers of an epoch", "per client"]
    rows = [
        [
            *map(str, case),
            _spread(100 * part["tasks_saved"], 1),
            _spread(100 * part["transfers_saved"], 1),
            _spread(part["transfers"]),
            _spread(part["transfers_per_client"]),
        ]
        for case, part in measurements.groupby(["clients", "chunk"])
    ]
    return table(titles, rows)


def _spread(values: pd.Series[float], digits: int = 0) -> str:
    return f"{values.mean():,.{digits}f} ± {values.std():,.{digits}f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Count hand-offs, print the table and write every partition's counts into a CSV file."""
    parser = argparse.ArgumentParser(prog="tools.handoffs", description=main.__doc__)
    parser.add_argument("--out", type=Path, help="write every partition's counts as CSV")
    chosen = parser.parse_args(arguments)
    measurements = measure_handoffs(LABELS, CASES, PARTITIONS)
    if chosen.out:
        measurements.round(4).to_csv(chosen.out, index=False)
    print(summary(measurements))


if __name__ == "__main__":
    main()
