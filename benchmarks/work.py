"""The same work for everyone: samples, initial weights, cohorts and the order of batches, drawn as the pipeline draws them."""

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
from cohort.core.randomness import generator, torch_seed

SEED = 0
SCALE, MEAN, STD = 255.0, 0.5, 0.25  # of the pixels


@dataclass(frozen=True)
class Work:
    """A workload with everything that it works on. Client k holds the k-th `size` samples; rounds are counted from 1."""

    workload: Workload
    values: np.ndarray
    labels: np.ndarray
    weights: dict[str, np.ndarray]
    cohorts: np.ndarray
    orders: np.ndarray

    def cohort(self, round: int) -> list[int]:
        """Who trains in a round."""
        return [int(client) for client in self.cohorts[self._row(round)]]

    def batches(self, round: int, client: int) -> Iterator[np.ndarray]:
        """The batches of a client's round, as places in its shard."""
        return self.workload.batches(self.epochs(round, client))

    def epochs(self, round: int, client: int) -> np.ndarray:
        """The order of a client's samples in each epoch of a round."""
        row = self._row(round)
        return self.orders[row, list(self.cohorts[row]).index(client)]

    def shard(self, client: int) -> slice:
        """Where a client's samples lie."""
        return slice(client * self.workload.size, (client + 1) * self.workload.size)

    def _row(self, round: int) -> int:
        return (round - 1) % len(self.cohorts)


def write(workload: Workload, folder: Path) -> dict[str, int]:
    """Have the work drawn, and the facts of its network. In a process of its own: one that has torch in memory would share it with the
    variants, and make them look small."""
    folder.mkdir(parents=True)
    (folder / "workload.json").write_text(json.dumps(asdict(workload)))
    subprocess.run([sys.executable, "-m", "benchmarks.work", folder], env=environment(), check=True)
    facts: dict[str, int] = json.loads((folder / "facts.json").read_text())
    return facts


def draw(workload: Workload, folder: Path) -> None:
    """Draw the work of so many rounds as are timed, and two more."""
    from benchmarks.networks import forward_operations, round_operations

    values, labels = _samples(workload)
    np.save(folder / "values.npy", values)
    np.save(folder / "labels.npy", labels)
    weights = _initial_weights(workload)
    np.savez(folder / "weights.npz", allow_pickle=False, **weights)
    cohorts = [_cohort(workload, round) for round in range(1, workload.rounds + 3)]
    orders = [
        [_orders(workload, round, client) for client in cohort]
        for round, cohort in enumerate(cohorts, start=1)
    ]
    np.savez(folder / "schedule.npz", cohorts=np.array(cohorts), orders=np.array(orders))
    facts = {
        "weights": sum(values.size for values in weights.values()),
        "forward": forward_operations(workload),
    }
    (folder / "facts.json").write_text(json.dumps(facts | {"round": round_operations(workload)}))


def read(folder: Path) -> Work:
    """What was written, its samples mapped into memory."""
    weights, schedule = dict(np.load(folder / "weights.npz")), np.load(folder / "schedule.npz")
    return Work(
        _workload(folder),
        np.load(folder / "values.npy", mmap_mode="c"),
        np.load(folder / "labels.npy"),
        weights,
        schedule["cohorts"],
        schedule["orders"],
    )


def _workload(folder: Path) -> Workload:
    stored = json.loads((folder / "workload.json").read_text())
    return Workload(**stored | {"shape": tuple(stored["shape"])})


def _samples(workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    """Noise with a trace of its class in it."""
    rng, count = np.random.default_rng(SEED), workload.clients * workload.size
    labels = rng.integers(0, workload.classes, count)
    traces = rng.integers(0, 80, (workload.classes, *workload.shape), dtype=np.uint8)
    return rng.integers(0, 176, (count, *workload.shape), dtype=np.uint8) + traces[labels], labels


def _initial_weights(workload: Workload) -> dict[str, np.ndarray]:
    import torch

    from benchmarks.networks import build

    torch.manual_seed(torch_seed(SEED, "initial weights"))
    return {name: tensor.numpy() for name, tensor in build(workload).state_dict().items()}


def _cohort(workload: Workload, round: int) -> np.ndarray:
    return generator(SEED, "selection", round=round).choice(
        np.arange(workload.clients), workload.cohort, replace=False
    )


def _orders(workload: Workload, round: int, client: int) -> np.ndarray:
    rng = generator(SEED, "batches", round=round, client=int(client))
    return np.array(
        [rng.permutation(workload.size) for _ in range(workload.epochs)], dtype=np.int16
    )


if __name__ == "__main__":
    draw(_workload(Path(sys.argv[1])), Path(sys.argv[1]))
