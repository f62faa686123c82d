"""What every variant starts from: arguments, drawn work, network and tensors."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from benchmarks import networks
from benchmarks.work import MEAN, SCALE, STD, Work
from cohort.models.networks import from_torchvision


def arguments() -> argparse.Namespace:
    """Parse a worker's command line and set torch's threads (0: torch's default).

    `style` selects a kind of plain loop or of peak operation, `trainer` one of our trainers, `avx2`
    native code for older processors, and `device` where it trains.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--style", default="loader")
    parser.add_argument("--trainer", default="auto")
    parser.add_argument("--avx2", action="store_true")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    return options


def network(given: Work) -> nn.Module:
    """Build the workload's network with the drawn initial weights."""
    model = networks.build(given.workload)
    model.load_state_dict(
        {name: torch.from_numpy(values) for name, values in given.weights.items()}
    )
    return model


def flat(tensors: Iterable[Tensor]) -> np.ndarray:
    """Concatenate tensors into one vector."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).cpu().numpy()


def standardized(values: np.ndarray) -> Tensor:
    """Convert pixels to standardized network inputs."""
    return (torch.from_numpy(values).float() / SCALE - MEAN) / STD


def shard(given: Work, client: int) -> tuple[Tensor, Tensor]:
    """A client's standardized images and labels."""
    rows = given.shard(client)
    return standardized(given.values[rows]), torch.from_numpy(given.labels[rows])


class Augmented(Dataset[tuple[Tensor, Tensor]]):
    """A client's samples, augmented on access by torchvision's transforms.

    The transforms are in the order that torchvision's documentation recommends.
    """

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

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.transform(self.images[index]), self.labels[index]


class EpochBatches:
    """A sampler that yields the batches of a client's next drawn epoch, as indices."""

    def __init__(self, given: Work, round: int, client: int):
        self.batches, self.per_epoch = given.batches(round, client), given.workload.per_epoch

    def __iter__(self) -> Iterator[Any]:
        return islice(self.batches, self.per_epoch)
