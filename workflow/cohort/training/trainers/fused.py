"""The chained trainer: one client after another, on networks that are a chain of common layers. It walks the chain back by itself, because
PyTorch's graph of a step takes longer than it should where batches are small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from cohort.cell.settings import Settings
from cohort.data.samples import Samples
from cohort.training.fused.network import chain_of, is_chain
from cohort.training.objectives import Objective
from cohort.training.objectives.cross_entropy import CrossEntropy
from cohort.training.trainers.serial import SerialTrainer

MEAN = 1  # of the losses of a batch, in PyTorch's count of reductions


class ChainedTrainer(SerialTrainer):
    """The serial trainer's steps, but for rounding."""

    name: ClassVar[str] = "chained"

    def __init__(
        self,
        model: nn.Module,
        settings: Settings,
        objective: Objective,
        samples: Samples,
        shards: list[np.ndarray],
    ):
        super().__init__(model, settings, objective, samples, shards)
        self.chain = chain_of(model.children())

    @classmethod
    def fits(cls, model: nn.Module, settings: Settings) -> bool:
        """In the federated procedure, for a chain of layers that it knows."""
        return (
            is_chain(model)
            and settings.procedure == "federated"
            and settings.precision != "bfloat16"
        )

    @torch.no_grad()
    def _backward(
        self, inputs: Tensor, targets: Tensor, facts: Tensor, bias: Tensor, anchor: Sequence[Tensor]
    ) -> Tensor:
        outputs = inputs
        for link in self.chain:
            outputs = link.forward(outputs)
        if type(self.objective) is CrossEntropy:
            loss, gradient = _cross_entropy(outputs, targets)
        else:
            loss, gradient = self._by_autograd(outputs, targets, facts, bias, anchor)
        for link in reversed(self.chain):
            gradient = link.backward(gradient, link is not self.chain[0])
        return loss

    @torch.enable_grad()
    def _by_autograd(
        self,
        outputs: Tensor,
        targets: Tensor,
        facts: Tensor,
        bias: Tensor,
        anchor: Sequence[Tensor],
    ) -> tuple[Tensor, Tensor]:
        """The objective's loss, and its gradient; what it asks of weights directly is then with them."""
        loss = self._loss(outputs.requires_grad_(), targets, facts, bias, anchor)
        loss.backward()
        assert outputs.grad is not None
        return loss.detach(), outputs.grad


def _cross_entropy(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The same for the mean of plain cross-entropy over a batch, written down."""
    aten, logs = torch.ops.aten, outputs.log_softmax(dim=1)
    loss, weight = aten.nll_loss_forward.default(logs, targets, None, MEAN, -100)
    slopes = aten.nll_loss_backward.default(
        torch.ones_like(loss), logs, targets, None, MEAN, -100, weight
    )
    return loss, aten._log_softmax_backward_data.default(slopes, logs, 1, outputs.dtype)
