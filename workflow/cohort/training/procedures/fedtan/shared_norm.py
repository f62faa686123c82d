"""Batch normalization whose statistics several clients compute together, from sums of their own.

The clients' networks run in lock step on one batch, in which each client has its rows. Layers with
weights work on each client's rows with that client's weights. Batch normalization uses a weighted
mean and variance of all rows, and the gradient goes back through both. All that a client tells of
its rows are sums: of the inputs, of their squared distances to the mean, and, in the backward pass,
of the gradients and of their products with the normalized inputs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from cohort.training.ledger import Ledger
from cohort.training.updates import Weights, size_in_bytes

Counts = Sequence[int]
"""How many rows of a batch each client has."""

Weighting = Callable[[Counts], list[float]]
"""The weight of each client's rows in the statistics, given the counts. All rows together weigh
1."""


def equal_row_weights(counts: Counts) -> list[float]:
    """The weight of a row of each client if all rows weigh the same (Stratify)."""
    return [1 / sum(counts)] * len(counts)


def equal_client_weights(counts: Counts) -> list[float]:
    """The weight of a row of each client if all clients weigh the same: the statistics, and the
    gradients that the clients receive, are plain averages of the clients' own (FedTAN)."""
    return [1 / (len(counts) * count) for count in counts]


def charge_exchange(weights: Weights, copies: int, ledger: Ledger) -> None:
    """Charge one step's exchange of statistics to so many clients: two numbers of each channel of
    batch normalization forward and two backward, from client to server and back."""
    channels = {
        name: tensor
        for name, tensor in weights.items()
        if name.endswith(("running_mean", "running_var"))
    }
    if not channels:
        return
    for what in ("batch_statistics", "gradients_of_statistics"):
        ledger.sent(what, size_in_bytes(channels), to="server", copies=copies)
        ledger.sent(what, size_in_bytes(channels), to="clients", copies=copies)


class LockStep:
    """The networks of several clients, which take their forward and backward passes together.

    Backward passes of any sum of their outputs leave each client's gradients in its own network.
    The networks' architectures are the same, and only batch normalization mixes rows.
    """

    def __init__(self, networks: Sequence[nn.Module], weighting: Weighting):
        self.batch = _RowCounts(weighting)
        self.joined = copy.deepcopy(networks[0]).train()
        for name, layer in networks[0].named_modules():
            own = [network.get_submodule(name) for network in networks]
            if isinstance(layer, _BatchNorm):
                self.joined.set_submodule(name, _SharedNorm(own, self.batch))
            elif next(layer.parameters(recurse=False), None) is not None:
                self.joined.set_submodule(name, _LayerPerClient(own, self.batch))

    def __call__(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Pass inputs through each client's network; return the outputs by client. Running
        statistics are updated."""
        self.batch.counts = [len(own) for own in inputs]
        outputs: Tensor = self.joined(torch.cat(tuple(inputs)))
        return outputs.split(self.batch.counts)


class _RowCounts:
    """The number of rows that each client has in the present batch, known to all layers."""

    def __init__(self, weighting: Weighting):
        self.weighting = weighting
        self.counts: list[int] = []

    def weights(self, inputs: Tensor) -> list[float]:
        """The weight of each number of a channel in each client's rows."""
        pixels = inputs[0, 0].numel()
        return [weight / pixels for weight in self.weighting(self.counts)]


class _LayerPerClient(nn.Module):
    """One layer of the network, which every client applies to its own rows with its own weights."""

    def __init__(self, layers: Sequence[Any], batch: _RowCounts):
        super().__init__()
        self.layers, self.batch = list(layers), batch

    def forward(self, inputs: Tensor) -> Tensor:
        rows = inputs.split(self.batch.counts)
        return torch.cat([layer(own) for layer, own in zip(self.layers, rows, strict=True)])


class _SharedNorm(_LayerPerClient):
    """A batch normalization layer of every client, with statistics of all rows."""

    def forward(self, inputs: Tensor) -> Tensor:
        layer, weights = self.layers[0], self.batch.weights(inputs)
        # autocast may have rounded the inputs
        full = inputs.to(layer.weight.dtype)
        normalized, mean, variance = _Normalize.apply(full, self.batch.counts, weights, layer.eps)
        self._update_running_stats(mean, variance, weights, inputs[0, 0].numel())
        shape = -1, *[1] * (inputs.dim() - 2)
        rows = zip(self.layers, normalized.split(self.batch.counts), strict=True)
        return torch.cat(
            [own * layer.weight.view(shape) + layer.bias.view(shape) for layer, own in rows]
        )

    @torch.no_grad()
    def _update_running_stats(
        self, mean: Tensor, variance: Tensor, weights: list[float], pixels: int
    ) -> None:
        """Move every client's running statistics towards those of the batch, the variance without
        its bias."""
        squares = (
            count * pixels * weight**2
            for count, weight in zip(self.batch.counts, weights, strict=True)
        )
        unbiased = variance / (1 - sum(squares))
        for layer in self.layers:
            layer.num_batches_tracked.add_(1)
            layer.running_mean.lerp_(mean, layer.momentum)
            layer.running_var.lerp_(unbiased, layer.momentum)


class _Normalize(torch.autograd.Function):
    """Autograd function: subtract the mean of each channel and divide by its deviation; return mean
    and variance too. A client's rows are read for its own sums and outputs only."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, counts: list[int], weights: list[float], eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        rows = inputs.split(counts)
        mean = _weighted_sum([_channel_sums(own) for own in rows], weights)
        centered = [own - _broadcast_channels(mean, own) for own in rows]
        variance = _weighted_sum([_channel_sums(own.square()) for own in centered], weights)
        scale = (variance + eps).rsqrt()
        normalized = torch.cat([own * _broadcast_channels(scale, own) for own in centered])
        ctx.save_for_backward(normalized, scale)
        ctx.counts, ctx.weights = counts, weights
        ctx.mark_non_differentiable(mean, variance)
        return normalized, mean, variance

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Any) -> tuple[Tensor, None, None, None]:
        normalized, scale = ctx.saved_tensors
        rows = list(zip(gradient.split(ctx.counts), normalized.split(ctx.counts), strict=True))
        ones = [1.0] * len(rows)
        direct = _weighted_sum([_channel_sums(own) for own, _ in rows], ones)
        scaled = _weighted_sum([_channel_sums(own * values) for own, values in rows], ones)
        gradients = [
            _broadcast_channels(scale, own)
            * (
                own
                - weight
                * (_broadcast_channels(direct, own) + values * _broadcast_channels(scaled, own))
            )
            for (own, values), weight in zip(rows, ctx.weights, strict=True)
        ]
        return torch.cat(gradients), None, None, None


def _channel_sums(rows: Tensor) -> Tensor:
    """A client's sum over all numbers of each channel."""
    return rows.sum(dim=(0, *range(2, rows.dim())))


def _weighted_sum(sums: list[Tensor], weights: list[float]) -> Tensor:
    """The weighted sum of what the clients sent."""
    total = sums[0] * weights[0]
    for own, weight in zip(sums[1:], weights[1:], strict=True):
        total = total + own * weight
    return total


def _broadcast_channels(channels: Tensor, rows: Tensor) -> Tensor:
    """A number for each channel, in a shape that fits rows of a batch."""
    return channels.view(-1, *[1] * (rows.dim() - 2))
