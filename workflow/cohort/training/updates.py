"""What a cohort sends back, stacked: one tensor per parameter with a leading client axis."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Updates:
    """The cohort's local models after training (`weights[name][k]` is client k's), the sizes of their data, their steps and mean losses."""

    weights: Weights
    sizes: Tensor
    steps: Tensor
    losses: Tensor

    def mean(self, shares: Tensor) -> Weights:
        """The weighted sum over clients; whole-number buffers (a batch counter) come back as whole numbers."""
        return {name: _weighted_sum(stack, shares) for name, stack in self.weights.items()}

    def of_rows(self, rows: list[int]) -> Updates:
        """The updates of some of the clients."""
        weights = {name: stack[rows] for name, stack in self.weights.items()}
        return Updates(weights, self.sizes[rows], self.steps[rows], self.losses[rows])

    def of_client(self, row: int) -> Weights:
        """One client's model."""
        return {name: stack[row] for name, stack in self.weights.items()}


def stack(models: list[Weights]) -> Weights:
    """One tensor per parameter, one row per client."""
    return {name: torch.stack([model[name] for model in models]) for name in models[0]}


def size_in_bytes(weights: Weights) -> int:
    """What sending these weights once costs."""
    return sum(tensor.numel() * tensor.element_size() for tensor in weights.values())


def _weighted_sum(rows: Tensor, shares: Tensor) -> Tensor:
    floating = rows if rows.is_floating_point() else rows.to(shares.dtype)
    total = torch.tensordot(shares.to(floating.dtype), floating, dims=1)
    return total if rows.is_floating_point() else total.round().to(rows.dtype)
