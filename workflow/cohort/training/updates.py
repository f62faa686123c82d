"""What a cohort sends back, stacked: one tensor per parameter with a leading client axis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Updates:
    """The cohort's local models after training (`weights[name][k]` is the k-th client's), the sizes of their data, their steps and mean
    losses, who they are, of how many clients, and the learning rate and momentum of their steps."""

    weights: Weights
    sizes: Tensor
    steps: Tensor
    losses: Tensor
    clients: tuple[int, ...] = ()
    total: int = 0
    lr: float = 1.0
    momentum: float = 0.0

    def shares(self) -> Tensor:
        """Each client's share of all their samples."""
        return self.sizes / self.sizes.sum()

    def mean(self, shares: Tensor) -> Weights:
        """The weighted sum over clients; whole-number buffers (a batch counter) come back as whole numbers."""
        return {name: _weighted_sum(stack, shares) for name, stack in self.weights.items()}

    def distances(self, weights: Weights) -> Tensor:
        """How far each client went from these weights: the norm over all of them together."""
        floating = (
            (rows, weights[name]) for name, rows in self.weights.items() if rows.is_floating_point()
        )
        norms = [
            torch.stack([_norm(row - start) for row in rows]) for rows, start in floating
        ]  # one by one: all at once need more memory
        return torch.stack(norms).square().sum(dim=0).sqrt()

    def effective_steps(self) -> Tensor:
        """How far each client's steps carry it on a constant gradient of 1, in learning rates: the number of its steps, and more of them
        with momentum, which repeats a part of every step in all later ones."""
        steps, rest = self.steps.clamp(min=1).double(), self.momentum
        return (steps - rest * (1 - rest**steps) / (1 - rest)) / (1 - rest)

    def scaled(self, weights: Weights, factors: Tensor) -> Updates:
        """The same with each client's way from these weights multiplied by its factor; where that is 1, it is as it was."""

        def short(start: Tensor, stack: Tensor) -> Tensor:
            factor = factors.to(stack.dtype).view(-1, *[1] * (stack.dim() - 1))
            return torch.where(factor < 1, start + factor * (stack - start), stack)

        changed = {
            name: short(weights[name], stack)
            for name, stack in self.weights.items()
            if stack.is_floating_point()
        }
        return replace(self, weights=self.weights | changed)

    def of_rows(self, rows: list[int]) -> Updates:
        """The updates of some of the clients."""
        if rows == list(range(len(self.sizes))):
            return self
        weights = {name: stack[rows] for name, stack in self.weights.items()}
        clients = tuple(self.clients[row] for row in rows) if self.clients else ()
        return replace(
            self,
            weights=weights,
            sizes=self.sizes[rows],
            steps=self.steps[rows],
            losses=self.losses[rows],
            clients=clients,
        )

    def only(self, names: Iterable[str]) -> Updates:
        """The updates of some of the weights."""
        return replace(self, weights={name: self.weights[name] for name in names})

    def of_client(self, row: int) -> Weights:
        """One client's model."""
        return {name: stack[row] for name, stack in self.weights.items()}


def stack(models: list[Weights]) -> Weights:
    """One tensor per parameter, one row per client."""
    return {name: torch.stack([model[name] for model in models]) for name in models[0]}


def size_in_bytes(weights: Weights) -> int:
    """What sending these weights once costs."""
    return sum(tensor.numel() * tensor.element_size() for tensor in weights.values())


def _norm(tensor: Tensor) -> Tensor:
    return torch.linalg.vector_norm(tensor, dtype=torch.float64)


def _weighted_sum(rows: Tensor, shares: Tensor) -> Tensor:
    floating = rows if rows.is_floating_point() else rows.to(shares.dtype)
    total = torch.tensordot(shares.to(floating.dtype), floating, dims=1)
    return total if rows.is_floating_point() else total.round().to(rows.dtype)
