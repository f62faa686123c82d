"""Local work (what one client does in a round) and updates (its results, stacked by client)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from cohort.core.randomness import generator, torch_seed
from cohort.settings import Settings, local_work

Weights = dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class LocalWork:
    """One client's work: from which weights, on which samples, at which learning rate. `round` and
    `client` address the random draws of batches, augmentation and dropout. Of the steps that J asks
    for, the client takes those from `begin` to `end`. `correction` gives what is added to the
    weights after each step, times the learning rate (SCAFFOLD's control variates). Samples are
    shuffled in each epoch unless they are to be taken `in_order`."""

    client: int
    round: int
    weights: Weights
    samples: np.ndarray
    lr: float
    begin: int = 0
    end: int | None = None
    correction: Callable[[], Weights] = field(default=dict)
    in_order: bool = False

    def steps(self, settings: Settings) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each step's number within J, and the positions of its batch in `samples`."""
        size, batch = len(self.samples), settings.batch
        steps, per_epoch = local_steps(size, settings)
        rng = generator(settings.seed, "batches", round=self.round, client=self.client)
        draw = np.arange if self.in_order or settings.order == "dealt" else rng.permutation
        for step in range(steps)[: self.end]:
            position = step % per_epoch
            if position == 0:
                order = draw(size)
            if step >= self.begin:
                yield step, order[position * batch : (position + 1) * batch]

    def dropout_seed(self, settings: Settings) -> int:
        """The seed of torch's generator for dropout: another one after a probe, which used one."""
        purpose = f"dropout from {self.begin}" if self.begin else "dropout"
        return torch_seed(settings.seed, purpose, round=self.round, client=self.client)


Works = Sequence[LocalWork]


def local_steps(size: int, settings: Settings) -> tuple[int, int]:
    """The number of steps of J and of an epoch, for a client with `size` samples; 0 without any."""
    amount, counts_epochs = local_work(settings.J)
    per_epoch = -(-size // settings.batch)
    steps = amount * per_epoch if counts_epochs else amount
    return (steps if size else 0), per_epoch


@dataclass(frozen=True)
class Updates:
    """The local models of a cohort after training: `weights[name][k]` belongs to the k-th client.
    `sizes`, `steps` and `losses` hold each client's number of samples, local steps and mean
    training loss; `clients` their numbers in a federation of `total`, which holds `samples`. `lr`
    and `momentum` are those of the local steps. `factors` say how much each update counts, if the
    selector weighs them."""

    weights: Weights
    sizes: Tensor
    steps: Tensor
    losses: Tensor
    clients: tuple[int, ...] = ()
    total: int = 0
    samples: int = 0
    lr: float = 1.0
    momentum: float = 0.0
    factors: Tensor | None = None

    def shares(self) -> Tensor:
        """The weight of each update: its share of the samples, or what the selector says."""
        return self.sizes / self.sizes.sum() if self.factors is None else self.factors

    def weighted_sum(self, shares: Tensor) -> Weights:
        """The sum of the local models, weighted by `shares`. Integer buffers are rounded."""
        sums: Weights = {}
        for name, rows in self.weights.items():
            floating = rows if rows.is_floating_point() else rows.to(shares.dtype)
            with torch.autocast(shares.device.type, enabled=False):  # it would round the sum
                total = torch.tensordot(shares.to(floating.dtype), floating, dims=1)
            sums[name] = total if rows.is_floating_point() else total.round().to(rows.dtype)
        return sums

    def merged(self, weights: Weights) -> Weights:
        """The mean of the local models by their shares. If the selector weighs updates, it is the
        sum of `weights` and the weighted updates, whose weights need not add up to 1."""
        means = self.weighted_sum(self.shares())
        if self.factors is None:
            return means
        rest = 1 - float(self.factors.sum())
        return {name: rest * weights[name] + tensor for name, tensor in means.items()}

    def distances(self, weights: Weights) -> Tensor:
        """The norm of each client's difference to these weights, over all floating tensors."""
        squares = []
        for name, rows in self.weights.items():
            if rows.is_floating_point():  # row by row, to save memory
                before, norm = weights[name], torch.linalg.vector_norm
                norms = [norm(row - before, dtype=torch.float64) for row in rows]
                squares.append(torch.stack(norms).square())
        return torch.stack(squares).sum(dim=0).sqrt()

    def effective_steps(self) -> Tensor:
        """The effective number of steps of each client (client): how far they would move a weight
        along a constant gradient of 1, divided by the learning rate. Without momentum it is the
        number of steps; momentum increases it."""
        steps, rest = self.steps.clamp(min=1).double(), self.momentum
        return (steps - rest * (1 - rest**steps) / (1 - rest)) / (1 - rest)

    def scaled(self, weights: Weights, factors: Tensor) -> Self:
        """Scale each client's update by its factor in [0, 1]; at 1 it is unchanged to the bit."""
        scaled: Weights = dict(self.weights)
        for name, stack in self.weights.items():
            if stack.is_floating_point():
                # (client, 1, ...)
                factor = factors.to(stack.dtype).view(-1, *[1] * (stack.dim() - 1))
                moved = weights[name] + factor * (stack - weights[name])
                scaled[name] = torch.where(factor < 1, moved, stack)
        return replace(self, weights=scaled)

    def select_rows(self, rows: list[int]) -> Self:
        """The updates of the clients in these rows only."""
        if rows == list(range(len(self.sizes))):
            return self
        weights = {name: stack[rows] for name, stack in self.weights.items()}
        clients = tuple(self.clients[row] for row in rows)
        taken: dict[str, Any] = {
            key: getattr(self, key)[rows] for key in ("sizes", "steps", "losses")
        }
        return replace(self, weights=weights, clients=clients, **taken)

    def only(self, names: Iterable[str]) -> Self:
        """The updates of only the weights with these names."""
        return replace(self, weights={name: self.weights[name] for name in names})

    def client_weights(self, row: int) -> Weights:
        """The local model's weights of the client in this row."""
        return {name: stack[row] for name, stack in self.weights.items()}


def stack(models: list[Weights]) -> Weights:
    """Stack models: one tensor per parameter with one row per model."""
    stacked = {}
    for name in models[0]:
        stacked[name] = torch.stack([model[name] for model in models])
    return stacked


def size_in_bytes(weights: Weights) -> int:
    """The size of all weights in bytes."""
    return sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
