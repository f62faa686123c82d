"""Local work whose first step the clients take together."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from cohort.core.randomness import torch_seed
from cohort.training.contract import losses_of
from cohort.training.cursor import Cursor
from cohort.training.procedures.fedtan.shared_norm import LockStep, equal_client_weights
from cohort.training.trainers.base import Trained
from cohort.training.trainers.local_work import LocalWork
from cohort.training.trainers.optimizers import LocalOptimizer, local_optimizer
from cohort.training.trainers.serial import AfterStep, SerialTrainer
from cohort.training.updates import Weights


class FirstStep(NamedTuple):
    """The result of a client's first step: its weights after the step, and the loss before it."""

    weights: Weights
    loss: Tensor


class FirstStepTogether(SerialTrainer):
    """The serial trainer, but the first step of all clients shares the statistics of batch
    normalization. Work that is resumed takes that step again."""

    def prepare(self) -> None:
        super().prepare()
        self.first: dict[int, FirstStep] = {}  # of the last call, by client

    def _train(self, works: Sequence[LocalWork], anchor: Weights, cursor: Cursor) -> Trained:
        self.first = self._first_steps(works)
        return super()._train(works, anchor, cursor)

    def run(
        self,
        work: LocalWork,
        optimizer: LocalOptimizer,
        anchor: Sequence[Tensor],
        after_step: AfterStep | None = None,
    ) -> Tensor:
        if work.client not in self.first:
            return super().run(work, optimizer, anchor, after_step)
        weights, loss = self.first[work.client]
        self.model.load_state_dict(weights)
        rest = replace(work, begin=1)
        return torch.cat([loss, super().run(rest, optimizer, anchor, after_step)])

    def _first_steps(self, works: Sequence[LocalWork]) -> dict[int, FirstStep]:
        """Take the first step of all clients that take any; return it by client. It starts at the
        global weights, where a proximal term is zero and does not pull."""
        steps = ((work, next(work.steps(self.settings), None)) for work in works)
        taking = [(work, *step) for work, step in steps if step is not None]
        batches = [self._batch(work, step, batch) for work, step, batch in taking]
        if sum(len(inputs) for inputs, _ in batches) < 2:  # one sample has no variance
            return {}
        networks = [self._network(work) for work, *_ in taking]
        seed, round = self.settings.seed, works[0].round
        torch.manual_seed(torch_seed(seed, "dropout", round=round))
        outputs = LockStep(networks, equal_client_weights)([inputs for inputs, _ in batches])
        losses = [
            self._mean_loss(work, network, own, targets)
            for (work, *_), network, own, (_, targets) in zip(
                taking, networks, outputs, batches, strict=True
            )
        ]
        torch.stack(losses).sum().backward()
        return {
            work.client: self._take_step(work, network, loss)
            for (work, *_), network, loss in zip(taking, networks, losses, strict=True)
        }

    def _batch(self, work: LocalWork, step: int, batch: np.ndarray) -> tuple[Tensor, Tensor]:
        """The inputs and labels of a step."""
        indices = torch.from_numpy(work.samples)
        return self._inputs(indices, work)(step, batch), self.samples.labels[indices[batch]]

    def _network(self, work: LocalWork) -> nn.Module:
        """A client's own network at the beginning of its work."""
        network = copy.deepcopy(self.model)
        network.load_state_dict(work.weights)
        return network

    def _mean_loss(
        self, work: LocalWork, network: nn.Module, outputs: Tensor, targets: Tensor
    ) -> Tensor:
        """Mean loss of a client's batch."""
        labels = self.samples.labels[torch.from_numpy(work.samples)]
        statistics, bias = self._statistics(labels, network)
        return losses_of(self.objective, outputs, targets, statistics, bias).mean()

    def _take_step(self, work: LocalWork, network: nn.Module, loss: Tensor) -> FirstStep:
        """Take the first optimizer step of a network whose gradients are set, and return its state
        and loss."""
        if self.settings.clip:
            clip_grad_norm_(network.parameters(), self.settings.clip)
        local_optimizer(self.settings, network.parameters(), work.lr).step()
        return FirstStep(network.state_dict(), loss.detach()[None])
