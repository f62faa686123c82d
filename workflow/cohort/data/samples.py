"""Samples on a device."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from cohort.data.store import read


@dataclass(frozen=True)
class Samples:
    """One split, whose values become a network's inputs on demand. Labels are on the device, values
    too on a GPU with room; else they stay in the mapped file. Text has no `scale`."""

    values: Tensor
    labels: Tensor
    scale: float | None
    mean: Tensor
    std: Tensor

    def inputs(self, indices: Tensor) -> Tensor:
        """The network's inputs for the samples with these indices: values scaled and standardized,
        or a text's characters as numbers."""
        if self.scale is None:
            return self._at(indices).long()
        return self.standardized(self.scaled(indices))

    def scaled(self, indices: Tensor) -> Tensor:
        """Values of the samples with these indices, divided by the scale: images are in [0, 1]."""
        assert self.scale is not None, "text has no scale"
        return self._at(indices).to(self.mean.dtype).div_(self.scale)

    def standardized(self, scaled: Tensor) -> Tensor:
        """Subtract each channel's mean and divide by its deviation."""
        return (scaled - self.mean).div_(self.std)

    def _at(self, indices: Tensor) -> Tensor:
        return self.values[indices.to(self.values.device)].to(self.labels.device)


@lru_cache(maxsize=6)  # cells of one process share their data
def load(path: str | Path, split: str, device: torch.device, dtype: torch.dtype) -> Samples:
    """Load a split, `train` or `test`, from a file of prepared data."""
    stored, attributes = read(path, split)
    values, labels = torch.from_numpy(stored.values), torch.from_numpy(stored.labels).to(device)
    if device.type == "cuda" and values.nbytes < torch.cuda.mem_get_info(device)[0] / 2:
        values = values.to(device)
    by_channel = (-1, *[1] * (values.ndim - 2))  # one number per channel of an image, or per column
    mean, std = (
        torch.tensor(attributes.get(key, []), dtype=dtype, device=device).view(by_channel)
        for key in ("mean", "std")
    )
    return Samples(values, labels, attributes.get("scale"), mean, std)
