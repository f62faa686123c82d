"""Rounds of FedTAN: those of FedAvg, with a first step that clients take together. In this step the
clients' networks run in lock step on one batch, in which each client has its rows. Layers with
weights work on each client's rows with that client's weights. The gradient goes back through the
means and variances of batch normalization. Of its rows a client discloses only sums by channel:
of inputs, of their squared distances to the mean, and backward, of the gradients of both."""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import clip_grad_norm_

from cohort.core.randomness import torch_seed
from cohort.training.contract import losses_of
from cohort.training.ledger import Cursor, Ledger
from cohort.training.procedures.federated import FederatedRounds, Pool
from cohort.training.procedures.procedure import Federated
from cohort.training.task import RunState, Task
from cohort.training.trainers import serial
from cohort.training.trainers.serial import AfterStep, LocalOptimizer
from cohort.training.trainers.trainer import Trained
from cohort.training.updates import LocalWork, Updates, Weights, Works, size_in_bytes


class FedTanRounds(FederatedRounds):
    """Federated rounds in whose first local step clients share batch statistics, at a cost."""

    def __init__(self, task: Task):
        super().__init__(Federated(), task)
        self.trainer = self.together = FirstStepTogether(task)

    def train(self, state: RunState, works: Works, pool: Pool, ledger: Ledger) -> Updates:
        updates = super().train(state, works, pool, ledger)
        charge_exchange(state.weights, len(self.together.first), ledger)
        return updates


def charge_exchange(weights: Weights, copies: int, ledger: Ledger) -> None:
    """Charge one step's exchange of statistics to so many clients: two numbers of each channel of
    batch normalization forward and two backward, from client to server and back."""
    endings = "running_mean", "running_var"
    running = {name: tensor for name, tensor in weights.items() if name.endswith(endings)}
    size = size_in_bytes(running)
    if running:
        for payload in ("batch_statistics", "gradients_of_statistics"):
            ledger.add_traffic(payload, size, to="server", copies=copies)
            ledger.add_traffic(payload, size, to="clients", copies=copies)


class FirstStepTogether(serial.SerialTrainer):
    """The serial trainer, but the first step of all clients shares the statistics of batch
    normalization. Work that is resumed takes that step again. `first` has, by client, the weights
    after the first step of the last call and the loss before."""

    def prepare(self) -> None:
        super().prepare()
        self.first: dict[int, tuple[Weights, Tensor]] = {}

    def _train(self, works: Works, anchor: Weights, cursor: Cursor) -> Trained:
        self.first = self._first_steps(works)
        return super()._train(works, anchor, cursor)

    def run(
        self, work: LocalWork, optimizer: LocalOptimizer, anchor: Sequence[Tensor], after: AfterStep
    ) -> Tensor:
        if work.client not in self.first:
            return super().run(work, optimizer, anchor, after)
        weights, loss = self.first[work.client]
        self.model.load_state_dict(weights)
        return torch.cat([loss, super().run(replace(work, begin=1), optimizer, anchor, after)])

    def _first_steps(self, works: Works) -> dict[int, tuple[Weights, Tensor]]:
        """Take the first step of all clients that take any. It starts at the global weights, where
        a proximal term is zero and does not pull."""
        networks, batches, settings = {}, {}, self.settings
        for work in works:
            if (first := next(work.steps(settings), None)) is None:
                continue
            indices = torch.from_numpy(work.samples)
            inputs, labels = self._inputs(indices, work)(*first), self.samples.labels[indices]
            batches[work.client] = inputs, labels, labels[torch.from_numpy(first[1])]
            networks[work.client] = copy.deepcopy(self.model)
            networks[work.client].load_state_dict(work.weights)
        if sum(len(inputs) for inputs, *_ in batches.values()) < 2:  # one sample has no variance
            return {}
        torch.manual_seed(torch_seed(settings.seed, "dropout", round=works[0].round))
        outputs = LockStep(list(networks.values()))([inputs for inputs, *_ in batches.values()])
        losses = []
        for client, rows in zip(networks, outputs, strict=True):
            _, labels, targets = batches[client]
            statistics, bias = self._statistics(labels, networks[client])
            losses.append(losses_of(self.objective, rows, targets, statistics, bias).mean())
        torch.stack(losses).sum().backward()
        lr, steps = {work.client: work.lr for work in works}, {}
        for (client, network), loss in zip(networks.items(), losses, strict=True):
            if settings.clip:
                clip_grad_norm_(network.parameters(), settings.clip)
            serial.local_optimizer(settings, network.parameters(), lr[client]).step()
            steps[client] = network.state_dict(), loss.detach()[None]
        return steps


class LockStep:
    """The networks of several clients, which take their forward and backward passes together.
    Backward passes of any sum of their outputs leave each client's gradients in its own network.
    The networks' architectures are the same, and only batch normalization mixes rows."""

    def __init__(self, networks: Sequence[nn.Module]):
        self.counts: list[int] = []  # the rows of each client in the present batch
        self.joined = copy.deepcopy(networks[0]).train()
        for name, layer in networks[0].named_modules():
            layers = [network.get_submodule(name) for network in networks]
            if isinstance(layer, _BatchNorm):
                self.joined.set_submodule(name, _SharedNorm(layers, self.counts))
            elif next(layer.parameters(recurse=False), None) is not None:
                self.joined.set_submodule(name, _LayerPerClient(layers, self.counts))

    def __call__(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The outputs of each client's network, whose running statistics move, for these inputs."""
        self.counts[:] = [len(rows) for rows in inputs]
        outputs: Tensor = self.joined(torch.cat(tuple(inputs)))
        return outputs.split(self.counts)


class _LayerPerClient(nn.Module):
    """One layer of the network, which every client applies to its own rows with its own weights."""

    def __init__(self, layers: Sequence[Any], counts: list[int]):
        super().__init__()
        self.layers, self.counts = list(layers), counts

    def forward(self, inputs: Tensor) -> Tensor:
        parts = inputs.split(self.counts)
        return torch.cat([layer(rows) for layer, rows in zip(self.layers, parts, strict=True)])


class _SharedNorm(_LayerPerClient):
    """The clients' batch normalization layer, with statistics in which all weigh the same."""

    def forward(self, inputs: Tensor) -> Tensor:
        layer, pixels = self.layers[0], inputs[0, 0].numel()
        # of each number of a channel in each client's rows
        weights = [1 / (len(self.counts) * count) / pixels for count in self.counts]
        full = inputs.to(layer.weight.dtype)  # autocast may have rounded the inputs
        parts, shape = full.split(self.counts), (-1, *[1] * (inputs.dim() - 2))
        mean = _weighted_sum(map(_channel_sums, parts), weights)
        centered = [rows - mean.view(shape) for rows in parts]
        variance = _weighted_sum([_channel_sums(rows.square()) for rows in centered], weights)
        scale = (variance + layer.eps).rsqrt().view(shape)
        pairs = zip(self.counts, weights, strict=True)
        with torch.no_grad():  # the running variance is that without its bias
            unbiased = variance / (1 - sum(count * pixels * weight**2 for count, weight in pairs))
            for layer in self.layers:
                layer.num_batches_tracked.add_(1)
                layer.running_mean.lerp_(mean, layer.momentum)
                layer.running_var.lerp_(unbiased, layer.momentum)
        outputs = []
        for layer, rows in zip(self.layers, centered, strict=True):
            outputs.append(rows * scale * layer.weight.view(shape) + layer.bias.view(shape))
        return torch.cat(outputs)


def _channel_sums(rows: Tensor) -> Tensor:
    """A client's sum over all numbers of each channel."""
    return rows.sum(dim=(0, *range(2, rows.dim())))


def _weighted_sum(sums: Iterable[Tensor], weights: list[float]) -> Tensor:
    """The weighted sum of what the clients sent."""
    first, *others = (part * weight for part, weight in zip(sums, weights, strict=True))
    return sum(others, start=first)
