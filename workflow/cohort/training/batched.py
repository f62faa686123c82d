"""The batched trainer: the whole cohort as one program with a client axis, for devices that one client cannot fill."""

from __future__ import annotations

from itertools import islice
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.functional import cross_entropy
from torch.nn.modules.dropout import _DropoutNd

from cohort.cell import Settings
from cohort.data.samples import Samples
from cohort.training.evaluation import CHUNK
from cohort.training.objectives import Objective
from cohort.training.stacked import Stack
from cohort.training.trainer import Orders, Probed, Trainer, batches, local_steps
from cohort.training.updates import Updates, Weights

HEIGHTS = 8  # of the stack, at most: to which it shrinks as one client after the other has done its steps


class BatchedTrainer(Trainer):
    """A step is a step of everybody who has not done all of its own; those with the most steps stand first in the stack. A batch that is
    shorter than the others is filled up with samples that have no share in its mean."""

    name: ClassVar[str] = "batched"

    def __init__(self, model: nn.Module, settings: Settings, objective: Objective, samples: Samples, shards: list[np.ndarray]):
        super().__init__(model, settings, objective, samples, shards)
        self.batch = min(settings.batch, max(map(len, shards)))
        self.labels = samples.labels.cpu()
        self.stack = Stack(model, settings, objective, height=0)

    @classmethod
    def fits(cls, model: nn.Module, settings: Settings) -> bool:
        """In the federated procedure, and where nothing normalizes over a batch, drops units at random, or is recurrent."""
        apart = any(isinstance(layer, _DropoutNd | nn.RNNBase) for layer in model.modules())
        return settings.procedure == "federated" and settings.optimizer == "sgd" and not apart and not list(model.buffers())

    def _trained(
        self,
        weights: Weights,
        clients: np.ndarray,
        shards: list[np.ndarray],
        round: int,
        lr: float,
        orders: Orders,
        probed: Probed | None,
    ) -> tuple[Weights, Tensor, list[int]]:
        work = [self._work(client, len(own), round, orders, probed) for client, own in zip(clients.tolist(), shards, strict=True)]
        counts = np.array([len(steps) for steps in work])
        rows = np.argsort(-counts, kind="stable")
        if len(rows) > self.stack.height:
            self.stack = Stack(self.model, self.settings, self.objective, len(rows))
        starts = [weights if probed is None else probed.of(client) for client in clients[rows].tolist()]
        held = torch.stack([self.labels[shards[row]].bincount(minlength=self.stack.classes) for row in rows])
        self.stack.fill(weights, starts, [orders.drift(client) for client in clients[rows].tolist()], held, lr)

        samples, shares, numbers = self._laid_out(clients[rows], [shards[row] for row in rows], [work[row] for row in rows], round)
        losses = torch.zeros_like(shares[:, :, 0])
        for step in range(len(samples)):
            height = self._height(int((counts > step).sum()))
            chosen = samples[step, :height]
            inputs = self._inputs(chosen, None if numbers is None else numbers[step, :height])
            losses[step, :height] = self.stack.step(inputs, self.samples.labels[chosen], shares[step, :height])
        back = torch.from_numpy(np.argsort(rows)).to(losses.device)
        means = losses.sum(dim=0)[back] / torch.from_numpy(counts).to(losses)
        return {name: tensor[back] for name, tensor in self.stack.weights.items()}, means, counts.tolist()

    @torch.no_grad()
    def losses(self, updates: Updates, samples: Samples, indices: Tensor) -> np.ndarray:
        self.model.eval()
        sums = torch.zeros(len(updates.sizes), dtype=torch.float64, device=indices.device)
        for chunk in indices.split(CHUNK):
            inputs, targets = samples.inputs(chunk), samples.labels[chunk]

            def loss(weights: Weights, inputs: Tensor = inputs, targets: Tensor = targets) -> Tensor:
                return cross_entropy(functional_call(self.model, weights, (inputs,)), targets, reduction="sum")

            sums += vmap(loss)(updates.weights)
        return (sums / len(indices)).cpu().numpy()

    def _work(self, client: int, size: int, round: int, orders: Orders, probed: Probed | None) -> list[tuple[int, np.ndarray]]:
        """A client's steps: which of J they are, and which of its samples make up each batch."""
        if not size:
            return []
        all_steps = enumerate(batches(size, self.settings, self.batch_order(client, round)))
        return list(islice(all_steps, self.first_step(size, probed), orders.steps.get(client)))

    def _laid_out(
        self, clients: np.ndarray, shards: list[np.ndarray], work: list[list[tuple[int, np.ndarray]]], round: int
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The round by step, client and place in the batch: which sample of the data set it is, its share in the mean of its batch, and the
        random numbers of its augmentation."""
        shape = max(map(len, work)), self.stack.height, self.batch
        samples, shares = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        numbers = np.zeros((*shape, self.augmentation.numbers))
        for row, (client, indices, steps) in enumerate(zip(clients.tolist(), shards, work, strict=True)):
            drawn = self.augmentation_numbers(len(indices), client, round) if steps and self.augmentation.numbers else None
            per_epoch = local_steps(len(indices), self.settings)[1]
            for place, (step, batch) in enumerate(steps):
                there = place, row, slice(len(batch))
                samples[there], shares[there] = indices[batch], 1 / len(batch)
                if drawn is not None:
                    numbers[there] = drawn[step // per_epoch][batch]
        device, std = self.samples.labels.device, self.samples.std
        drawn_numbers = torch.from_numpy(numbers).to(device) if self.augmentation.numbers else None
        return torch.from_numpy(samples).to(device), torch.from_numpy(shares).to(std), drawn_numbers

    def _height(self, active: int) -> int:
        """Of the stack with so many clients that go on: one of a few, since each is recorded for itself."""
        unit = -(-self.stack.height // HEIGHTS)
        return min(-(-active // unit) * unit, self.stack.height)

    def _inputs(self, chosen: Tensor, numbers: Tensor | None) -> Tensor:
        """What the networks see of a step's samples."""
        flat = chosen.flatten()
        if numbers is None:
            inputs = self.samples.inputs(flat)
        else:
            inputs = self.samples.standardized(self.augmentation.apply(self.samples.scaled(flat), numbers.flatten(0, 1)))
        return inputs.unflatten(0, chosen.shape)
