"""A stack of networks, one for each client, and a step of all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from cohort.cell.settings import Settings
from cohort.training.objectives import Objective
from cohort.training.objectives.objective import output_bias
from cohort.training.trainers.batched.cuda_graph import CudaGraphed
from cohort.training.updates import Weights, stack


class Stack:
    """Weights, velocities and corrections with a row for each client, the objective's facts likewise, and the weights that all are pulled to.
    The tensors stay where they are from round to round, as recorded steps expect."""

    def __init__(self, model: nn.Module, settings: Settings, objective: Objective, height: int):
        self.model, self.settings, self.objective, self.height = model, settings, objective, height
        parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
        bias = output_bias(model).detach()
        self.weights, self.velocity, self.correction = (
            {name: tensor.new_zeros(height, *tensor.shape) for name, tensor in parameters.items()}
            for _ in range(3)
        )
        self.anchor = {name: tensor.clone() for name, tensor in parameters.items()}
        self.classes = len(bias)
        self.facts, self.lr = bias.new_zeros(height, len(bias)), bias.new_zeros(())
        self.step = CudaGraphed(self._step, [*self.weights.values(), *self.velocity.values()])

    def fill(
        self,
        weights: Weights,
        starts: Sequence[Weights],
        corrections: Sequence[Weights],
        counts: Tensor,
        lr: float,
    ) -> None:
        """Begin a round: each client with its own weights, correction and label counts."""
        rows = slice(len(starts))
        begun, corrected = stack(list(starts)), stack(list(corrections))
        for name, anchor in self.anchor.items():
            anchor.copy_(weights[name])
            self.weights[name][rows] = begun[name]
            self.velocity[name].zero_()
            self.correction[name][rows] = corrected.get(name, 0)
        self.facts[rows] = torch.stack([self.objective.facts(own) for own in counts.to(self.facts)])
        self.lr.fill_(lr)

    def _step(self, inputs: Tensor, targets: Tensor, shares: Tensor) -> Tensor:
        """One step of the first clients, as many as there are rows of a batch: their losses. A row whose samples all have no share stands
        still and has no loss."""
        settings, rows = self.settings, slice(len(inputs))
        own = {name: tensor[rows] for name, tensor in self.weights.items()}
        of_each = grad_and_value(self._loss)
        gradients, losses = vmap(of_each, in_dims=(0, 0, 0, 0, 0, None))(
            own, inputs, targets, shares, self.facts[rows], self.anchor
        )
        if settings.clip:
            norms = (
                torch.stack(
                    [change.flatten(1).square().sum(dim=1) for change in gradients.values()]
                )
                .sum(dim=0)
                .sqrt()
            )
            shortening = (settings.clip / (norms + 1e-6)).clamp(max=1)  # as clip_grad_norm_ does
            gradients = {
                name: change * _over(shortening, change) for name, change in gradients.items()
            }
        goes_on = shares.any(dim=1)
        for name, weight in own.items():
            change, velocity = (
                gradients[name].add(weight, alpha=settings.weight_decay),
                self.velocity[name][rows],
            )
            velocity.mul_(settings.momentum).add_(change)
            way = self.lr * (self.correction[name][rows] - velocity)
            weight.add_(way.where(_over(goes_on, way), 0))
        return losses.where(goes_on, 0)

    def _loss(
        self,
        weights: Weights,
        inputs: Tensor,
        targets: Tensor,
        shares: Tensor,
        facts: Tensor,
        anchor: Weights,
    ) -> Tensor:
        """Of one client's batch."""
        *_, bias = weights.values()
        outputs = functional_call(self.model, weights, (inputs,))
        loss = (shares * self.objective.losses(outputs, targets, facts, bias)).sum()
        return (
            loss + self.objective.proximal_term(weights.values(), anchor.values())
            if self.objective.is_proximal
            else loss
        )


def _over(rows: Tensor, like: Tensor) -> Tensor:
    """A number for each row, shaped to be multiplied with all of the row's."""
    return rows.view(-1, *[1] * (like.dim() - 1))
