"""What variants are given: their work, as tensors and networks."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from benchmarks import networks, work
from benchmarks.work import MEAN, SCALE, STD, Work
from cohort.models.vision import from_torchvision


def arguments() -> argparse.Namespace:
    """What the command line says: where the work lies, how many threads of torch (0: as many as it takes by itself), in which
    style a plain loop is written, and which trainer of ours it is."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--style", default="loader")
    parser.add_argument("--trainer", default="auto")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    return given


def given_work(folder: Path) -> Work:
    """The work that lies there."""
    return work.read(folder)


def network(given: Work) -> nn.Module:
    """The workload's network with the initial weights."""
    model = networks.build(given.workload)
    model.load_state_dict(
        {name: torch.from_numpy(values) for name, values in given.weights.items()}
    )
    return model


def flat(tensors: Iterable[Tensor]) -> np.ndarray:
    """All weights in one row."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).numpy()


def standardized(values: np.ndarray) -> Tensor:
    """Pixels as a network takes them."""
    return (torch.from_numpy(values).float() / SCALE - MEAN) / STD


def shard(given: Work, client: int) -> tuple[Tensor, Tensor]:
    """A client's samples, ready for the network."""
    rows = given.shard(client)
    return standardized(given.values[rows]), torch.from_numpy(given.labels[rows])


class Augmented(Dataset[tuple[Tensor, Tensor]]):
    """A client's images, each changed at random when it is asked for: torchvision's transforms, in the order that its documentation
    recommends."""

    def __init__(self, given: Work, client: int):
        v2: Any = from_torchvision("transforms.v2")
        rows = given.shard(client)
        self.images, self.labels = (
            torch.from_numpy(given.values[rows]),
            torch.from_numpy(given.labels[rows]),
        )
        self.transform = v2.Compose(
            [
                v2.ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1),
                v2.RandomHorizontalFlip(0.5),
                v2.RandomGrayscale(0.1),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize([MEAN] * 3, [STD] * 3),
            ]
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        return self.transform(self.images[place]), self.labels[place]
