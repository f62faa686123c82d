"""The fused trainer: one client after another, on networks that are a sequence of common layers.

It runs the backward pass itself, because where batches are small PyTorch spends much of a step on
building and walking its autograd graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from cohort.cell.settings import Settings
from cohort.training.fused.network import fuse, is_fusible
from cohort.training.objectives.cross_entropy import CrossEntropy
from cohort.training.trainers.serial import SerialTrainer

MEAN = 1  # PyTorch's number for the reduction "mean"


class FusedTrainer(SerialTrainer):
    """The serial trainer's steps, but for rounding, without autograd."""

    name: ClassVar[str] = "fused"

    def prepare(self) -> None:
        super().prepare()
        self.layers = fuse(self.model.children())

    @classmethod
    def fits(cls, model: nn.Module, settings: Settings) -> bool:
        """Whether the network is a sequence of layers that can be fused, at full precision."""
        return is_fusible(model) and settings.precision != "bfloat16"

    @torch.no_grad()
    def _backward(
        self, inputs: Tensor, targets: Tensor, facts: Tensor, bias: Tensor, anchor: Sequence[Tensor]
    ) -> Tensor:
        outputs = inputs
        for layer in self.layers:
            outputs = layer.forward(outputs)
        if type(self.objective) is CrossEntropy:
            loss, gradient = _cross_entropy(outputs, targets)
        else:
            loss, gradient = self._objective_by_autograd(outputs, targets, facts, bias, anchor)
        for layer in reversed(self.layers):
            gradient = layer.backward(gradient, needs_input_grad=layer is not self.layers[0])
        return loss

    @torch.enable_grad()
    def _objective_by_autograd(
        self,
        outputs: Tensor,
        targets: Tensor,
        facts: Tensor,
        bias: Tensor,
        anchor: Sequence[Tensor],
    ) -> tuple[Tensor, Tensor]:
        """The objective's loss and its gradient with respect to the outputs. What it asks of the
        weights directly (a proximal term) is then in their gradients."""
        loss = self._loss(outputs.requires_grad_(), targets, facts, bias, anchor)
        loss.backward()
        assert outputs.grad is not None
        return loss.detach(), outputs.grad


def _cross_entropy(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The mean cross-entropy of a batch and its gradient with respect to the outputs."""
    aten, logs = torch.ops.aten, outputs.log_softmax(dim=1)
    loss, weight = aten.nll_loss_forward.default(logs, targets, None, MEAN, -100)
    one = torch.ones_like(loss)
    gradient = aten.nll_loss_backward.default(one, logs, targets, None, MEAN, -100, weight)
    return loss, aten._log_softmax_backward_data.default(gradient, logs, 1, outputs.dtype)
