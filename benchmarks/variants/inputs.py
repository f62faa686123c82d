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

from benchmarks.draw import build
from benchmarks.work import MEAN, SCALE, STD, Work


def arguments() -> argparse.Namespace:
    """Parse a worker's command line and set torch's threads (0: torch's default).

    `style` selects a kind of plain loop or of BlazeFL's pool, `trainer` one of our trainers, and
    `device` where it trains.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--style", default="loader")
    parser.add_argument("--trainer", default="auto")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    return options


def network(work: Work) -> nn.Module:
    """Build the workload's network with the drawn initial weights."""
    model = build(work.workload)
    model.load_state_dict({name: torch.from_numpy(values) for name, values in work.weights.items()})
    return model


def flat(tensors: Iterable[Tensor]) -> np.ndarray:
    """Concatenate tensors into one vector."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).cpu().numpy()


def standardized(values: np.ndarray) -> Tensor:
    """Convert pixels to standardized network inputs."""
    return (torch.from_numpy(values).float() / SCALE - MEAN) / STD


def shard(work: Work, client: int) -> tuple[Tensor, Tensor]:
    """A client's standardized images and labels."""
    rows = work.shard(client)
    return standardized(work.values[rows]), torch.from_numpy(work.labels[rows])


class EpochBatches:
    """A sampler that yields the batches of a client's next drawn epoch, as indices."""

    def __init__(self, work: Work, round: int, client: int):
        self.batches, self.per_epoch = work.batches(round, client), work.workload.per_epoch

    def __iter__(self) -> Iterator[Any]:
        return islice(self.batches, self.per_epoch)
