"""The work that every variant does: samples, initial weights, cohorts and batch orders.

benchmarks.draw draws it into a folder, from which the variants read it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.peers import environment
from benchmarks.workloads import Workload

SEED = 0
SCALE, MEAN, STD = 255.0, 0.5, 0.25  # of pixels


@dataclass(frozen=True)
class Work:
    """A workload and its drawn data. Rounds count from 1, clients and sample indices from 0."""

    workload: Workload
    values: np.ndarray
    labels: np.ndarray
    weights: dict[str, np.ndarray]
    cohorts: np.ndarray
    orders: np.ndarray

    def cohort(self, round: int) -> list[int]:
        """The clients that train in a round."""
        return [int(client) for client in self.cohorts[self._row(round)]]

    def batches(self, round: int, client: int) -> Iterator[np.ndarray]:
        """A client's batches in a round, as indices into its shard."""
        return self.workload.batches(self.epochs(round, client))

    def epochs(self, round: int, client: int) -> np.ndarray:
        """The order of a client's samples in each epoch of a round, as indices into its shard."""
        row = self._row(round)
        return self.orders[row, list(self.cohorts[row]).index(client)]

    def shard(self, client: int) -> slice:
        """The slice of a client's samples among all samples."""
        return slice(client * self.workload.size, (client + 1) * self.workload.size)

    def _row(self, round: int) -> int:
        return (round - 1) % len(self.cohorts)


def draw(workload: Workload, folder: Path) -> None:
    """Draw a workload into a new folder, in a child process: if this one loaded torch, it would
    share those pages with the variants and so reduce their proportional set sizes."""
    folder.mkdir(parents=True)
    write_description(workload, folder)
    subprocess.run([sys.executable, "-m", "benchmarks.draw", folder], env=environment(), check=True)


def write_description(workload: Workload, folder: Path) -> None:
    """Write the description of a workload into a folder."""
    (folder / "workload.json").write_text(json.dumps(asdict(workload)))


def read_work(folder: Path) -> Work:
    """Read a drawn workload; its samples are mapped into memory."""
    weights, schedule = dict(np.load(folder / "weights.npz")), np.load(folder / "schedule.npz")
    return Work(
        read_workload(folder),
        np.load(folder / "values.npy", mmap_mode="c"),
        np.load(folder / "labels.npy"),
        weights,
        schedule["cohorts"],
        schedule["orders"],
    )


def read_workload(folder: Path) -> Workload:
    """Read the description of a workload alone, without its samples."""
    stored = json.loads((folder / "workload.json").read_text())
    return Workload(**stored | {"shape": tuple(stored["shape"])})
