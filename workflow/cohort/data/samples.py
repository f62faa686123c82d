"""Samples on a device."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from cohort.data.store import read


@dataclass(frozen=True)
class Samples:
    """One split as it is stored, turned into a network's inputs when they are asked for; text has no scale and goes in as it is.

    Labels lie on the device. Values do too, unless it is the CPU or they would fill a GPU: then they stay in the file, mapped into memory.
    """

    values: Tensor
    labels: Tensor
    scale: float | None
    mean: Tensor
    std: Tensor

    def inputs(self, indices: Tensor) -> Tensor:
        """Values divided by the scale, then standardized channel by channel; characters as numbers."""
        return (
            self._at(indices).long()
            if self.scale is None
            else self.standardized(self.scaled(indices))
        )

    def scaled(self, indices: Tensor) -> Tensor:
        """Images with values in [0, 1]."""
        assert self.scale is not None, "text has no scale"
        return self._at(indices).to(self.mean.dtype).div_(self.scale)

    def standardized(self, scaled: Tensor) -> Tensor:
        """Channel by channel, less the mean and divided by the deviation."""
        return (scaled - self.mean).div_(self.std)

    def _at(self, indices: Tensor) -> Tensor:
        return self.values[indices.to(self.values.device)].to(self.labels.device)


def load(path: str | Path, split: str, device: torch.device, dtype: torch.dtype) -> Samples:
    """A split from the store."""
    stored, facts = read(path, split)
    values, labels = torch.from_numpy(stored.values), torch.from_numpy(stored.labels).to(device)
    if device.type == "cuda" and values.nbytes < torch.cuda.mem_get_info(device)[0] / 2:
        values = values.to(device)
    each = (-1, *[1] * (values.ndim - 2))  # one number for a channel of an image, or for a column
    mean, std = (
        torch.tensor(facts.get(key, []), dtype=dtype, device=device).view(each)
        for key in ("mean", "std")
    )
    return Samples(values, labels, facts.get("scale"), mean, std)
