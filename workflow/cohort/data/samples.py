"""Samples on a device."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from cohort.data.store import read


@dataclass(frozen=True)
class Samples:
    """One split on a device: bytes as stored, turned into a network's inputs when they are asked for."""

    images: Tensor
    labels: Tensor
    scale: float
    mean: Tensor
    std: Tensor

    def inputs(self, indices: Tensor) -> Tensor:
        """Images divided by the scale, then standardized channel by channel."""
        return self.standardized(self.scaled(indices))

    def scaled(self, indices: Tensor) -> Tensor:
        """Images with values in [0, 1]."""
        return self.images[indices].to(self.mean.dtype) / self.scale

    def standardized(self, scaled: Tensor) -> Tensor:
        """Channel by channel, less the mean and divided by the deviation."""
        return (scaled - self.mean) / self.std


def load(path: str | Path, split: str, device: torch.device, dtype: torch.dtype) -> Samples:
    """A split from the store."""
    stored, facts = read(path, split)
    mean, std = (torch.tensor(facts[key], dtype=dtype, device=device).view(-1, 1, 1) for key in ("mean", "std"))
    images, labels = (torch.from_numpy(array).to(device) for array in (stored.images, stored.labels))
    return Samples(images, labels, float(facts["scale"]), mean, std)
