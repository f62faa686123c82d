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

from cohort.cell.settings import Settings
from cohort.data.samples import Samples
from cohort.training.evaluation import chunks
from cohort.training.objectives import Objective
from cohort.training.trainers.base import Trainer, Work, batches, local_steps
from cohort.training.trainers.batched.stack import Stack
from cohort.training.updates import Updates, Weights

HEIGHTS = (
    8  # of the stack, at most: to which it shrinks as one client after the other has done its steps
)


class BatchedTrainer(Trainer):
    """A step is a step of everybody who has not done all of its own; those with the most steps stand first in the stack. A batch that is
    shorter than the others is filled up with a sample of the client's that has no share in its mean."""

    name: ClassVar[str] = "batched"

    def __init__(
        self,
        model: nn.Module,
        settings: Settings,
        objective: Objective,
        samples: Samples,
        shards: list[np.ndarray],
    ):
        super().__init__(model, settings, objective, samples, shards)
        self.batch = min(settings.batch, max(map(len, shards)))
        self.labels = samples.labels.cpu()
        self.stack = Stack(model, settings, objective, height=0)

    @classmethod
    def fits(cls, model: nn.Module, settings: Settings) -> bool:
        """In the federated procedure, and where nothing normalizes over a batch, drops units at random, or is recurrent."""
        apart = any(isinstance(layer, _DropoutNd | nn.RNNBase) for layer in model.modules())
        return (
            settings.procedure == "federated"
            and settings.optimizer == "sgd"
            and not apart
            and not list(model.buffers())
        )

    def _trained(self, work: Work) -> tuple[Weights, Tensor, list[int]]:
        steps = [
            self._steps(client, len(own), work)
            for client, own in zip(work.clients, work.shards, strict=True)
        ]
        counts = np.array([len(own) for own in steps])
        rows = np.argsort(-counts, kind="stable")
        if len(rows) > self.stack.height:
            self.stack = Stack(self.model, self.settings, self.objective, len(rows))
        clients, shards = [work.clients[row] for row in rows], [work.shards[row] for row in rows]
        held = torch.stack(
            [self.labels[indices].bincount(minlength=self.stack.classes) for indices in shards]
        )
        drifts = [work.orders.drift(client) for client in clients]
        self.stack.fill(
            work.weights, [work.start(client) for client in clients], drifts, held, work.lr
        )

        samples, shares, numbers = self._laid_out(
            clients, shards, [steps[row] for row in rows], work.round
        )
        losses = torch.zeros_like(shares[:, :, 0])
        for step in range(len(samples)):
            height = self._height(int((counts > step).sum()))
            chosen = samples[step, :height]
            inputs = self._inputs(chosen, None if numbers is None else numbers[step, :height])
            losses[step, :height] = self.stack.step(
                inputs, self.samples.labels[chosen], shares[step, :height]
            )
        back = torch.from_numpy(np.argsort(rows)).to(losses.device)
        means = losses.sum(dim=0)[back] / torch.from_numpy(counts).to(losses)
        return (
            {name: tensor[back] for name, tensor in self.stack.weights.items()},
            means,
            counts.tolist(),
        )

    @torch.no_grad()
    def losses(self, updates: Updates, samples: Samples, indices: Tensor) -> np.ndarray:
        self.model.eval()
        sums = torch.zeros(len(updates.sizes), dtype=torch.float64, device=indices.device)
        for chunk in chunks(samples, indices):
            inputs, targets = samples.inputs(chunk), samples.labels[chunk]

            def loss(
                weights: Weights, inputs: Tensor = inputs, targets: Tensor = targets
            ) -> Tensor:
                return cross_entropy(
                    functional_call(self.model, weights, (inputs,)), targets, reduction="sum"
                )

            sums += vmap(loss)(updates.weights)
        return (sums / len(indices)).cpu().numpy()

    def _steps(self, client: int, size: int, work: Work) -> list[tuple[int, np.ndarray]]:
        """A client's steps: which of J they are, and which of its samples make up each batch."""
        if not size:
            return []
        all_steps = enumerate(batches(size, self.settings, self.batch_order(client, work.round)))
        return list(
            islice(all_steps, self.first_step(size, work.probed), work.orders.steps.get(client))
        )

    def _laid_out(
        self,
        clients: list[int],
        shards: list[np.ndarray],
        steps: list[list[tuple[int, np.ndarray]]],
        round: int,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The round by step, client and place in the batch: which sample of the data set it is, its share in the mean of its batch, and the
        random numbers of its augmentation."""
        shape = max(map(len, steps)), self.stack.height, self.batch
        samples, shares = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        numbers = np.zeros((*shape, self.augmentation.numbers))
        for row, (client, indices, own) in enumerate(zip(clients, shards, steps, strict=True)):
            drawn = (
                self.augmentation_numbers(len(indices), client, round)
                if own and self.augmentation.numbers
                else None
            )
            per_epoch = local_steps(len(indices), self.settings)[1]
            samples[:, row] = indices[:1] if len(indices) else 0  # what batches are filled up with
            for place, (step, batch) in enumerate(own):
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
            inputs = self.samples.standardized(
                self.augmentation.apply(self.samples.scaled(flat), numbers.flatten(0, 1))
            )
        return inputs.unflatten(0, chosen.shape)
