"""`python -m benchmarks.draw FOLDER`: draw a workload from the pipeline's random streams."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.work import SEED, Work, read_workload, write_description
from benchmarks.workloads import Workload
from cohort.core.randomness import generator, torch_seed
from cohort.models import MODELS


def build(workload: Workload) -> nn.Module:
    """Build the workload's network, initialized from torch's global generator."""
    if workload.model in MODELS:
        return MODELS[workload.model]().build(workload.shape, workload.classes)
    return conv32_conv64(workload.classes)


def conv32_conv64(classes: int) -> nn.Module:
    """Two 3x3 convolutions and two linear layers for 28x28 images; 225,034 weights at ten classes.

    None of the five papers uses it.
    """
    return nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1600, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )


def draw_work(workload: Workload) -> Work:
    """Draw a workload's data for its timed rounds and two more."""
    values, labels = _samples(workload)
    cohorts = [_cohort(workload, round) for round in range(1, workload.rounds + 3)]
    orders = [_orders(workload, *round) for round in enumerate(cohorts, start=1)]
    weights = _initial_weights(workload)
    return Work(workload, values, labels, weights, np.array(cohorts), np.array(orders))


def save_work(work: Work, folder: Path) -> None:
    """Write drawn work into a folder, from which `read_work` reads it."""
    write_description(work.workload, folder)
    np.save(folder / "values.npy", work.values)
    np.save(folder / "labels.npy", work.labels)
    np.savez(folder / "weights.npz", allow_pickle=False, **work.weights)
    np.savez(folder / "schedule.npz", cohorts=work.cohorts, orders=work.orders)


def _samples(workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    """Draw the images, noise plus a faint pattern for each class, and their labels."""
    rng, count = np.random.default_rng(SEED), workload.clients * workload.size
    labels = rng.integers(0, workload.classes, count)
    patterns = rng.integers(0, 80, (workload.classes, *workload.shape), dtype=np.uint8)
    return rng.integers(0, 176, (count, *workload.shape), dtype=np.uint8) + patterns[labels], labels


def _initial_weights(workload: Workload) -> dict[str, np.ndarray]:
    torch.manual_seed(torch_seed(SEED, "initial weights"))
    return {name: tensor.numpy() for name, tensor in build(workload).state_dict().items()}


def _cohort(workload: Workload, round: int) -> np.ndarray:
    return generator(SEED, "selection", round=round).choice(
        np.arange(workload.clients), workload.cohort, replace=False
    )


def _orders(workload: Workload, round: int, cohort: np.ndarray) -> np.ndarray:
    """Draw the order of samples in a round, indexed by client of the cohort and epoch."""
    rngs = [generator(SEED, "batches", round=round, client=int(client)) for client in cohort]
    orders = [rng.permutation(workload.size) for rng in rngs for _ in range(workload.epochs)]
    shape = (workload.cohort, workload.epochs, workload.size)
    return np.array(orders, dtype=np.int16).reshape(shape)


def main(folder: Path) -> None:
    """Draw the workload whose description is in a folder, and write it there."""
    save_work(draw_work(read_workload(folder)), folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
