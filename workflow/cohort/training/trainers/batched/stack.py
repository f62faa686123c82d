"""The stacked networks of a cohort, and a training step of all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from cohort.cell.settings import Settings
from cohort.training.contract.checked_objective import losses_of
from cohort.training.objectives import Objective, output_bias
from cohort.training.trainers.batched.cuda_graph import CudaGraphFunction
from cohort.training.updates import Weights, stack


class Stack:
    """The tensors of up to `height` clients, one row each: weights, velocities, corrections (of
    SCAFFOLD) and the objective's statistics; and the `anchor`, the global weights of a proximal
    term.

    They keep their memory from round to round, as CUDA graphs require.
    """

    def __init__(self, model: nn.Module, settings: Settings, objective: Objective, height: int):
        self.model, self.settings, self.objective, self.height = model, settings, objective, height
        parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
        bias = output_bias(model).detach()
        self.weights, self.velocity, self.correction = (
            _zero_rows(parameters, height) for _ in range(3)
        )
        self.anchor = {name: tensor.clone() for name, tensor in parameters.items()}
        self.classes = len(bias)
        self.statistics, self.lr = bias.new_zeros(height, len(bias)), bias.new_zeros(())
        self.step = CudaGraphFunction(self._step, [*self.weights.values(), *self.velocity.values()])

    def fill(
        self,
        weights: Weights,
        starts: Sequence[Weights],
        corrections: Sequence[Weights],
        counts: Tensor,
        lr: float,
    ) -> None:
        """Set each client's row for a round: its own weights and correction, statistics of its
        label counts, and velocity 0."""
        rows = slice(len(starts))
        begun, corrected = stack(list(starts)), stack(list(corrections))
        for name, anchor in self.anchor.items():
            anchor.copy_(weights[name])
            self.weights[name][rows] = begun[name]
            self.velocity[name].zero_()
            self.correction[name][rows] = corrected.get(name, 0)
        self.statistics[rows] = torch.stack(
            [self.objective.label_statistics(own) for own in counts.to(self.statistics)]
        )
        self.lr.fill_(lr)

    def _step(self, inputs: Tensor, targets: Tensor, sample_weights: Tensor) -> Tensor:
        """Take one SGD step with the first clients, one per row of `inputs`; return their losses.

        `sample_weights` weigh the samples in the mean loss of their batch; a client whose samples
        all weigh 0 does not change, and its loss is 0.
        """
        settings, rows = self.settings, slice(len(inputs))
        own = {name: tensor[rows] for name, tensor in self.weights.items()}
        of_each = grad_and_value(self._loss)
        gradients, losses = vmap(of_each, in_dims=(0, 0, 0, 0, 0, None))(
            own, inputs, targets, sample_weights, self.statistics[rows], self.anchor
        )
        if settings.clip:
            squares = [change.flatten(1).square().sum(dim=1) for change in gradients.values()]
            norms = torch.stack(squares).sum(dim=0).sqrt()
            factors = (settings.clip / (norms + 1e-6)).clamp(max=1)  # as in clip_grad_norm_
            gradients = {
                name: change * _broadcast_rows(factors, change)
                for name, change in gradients.items()
            }
        is_active = sample_weights.any(dim=1)
        before, changes = list(own.values()), [gradients[name] for name in own]
        velocity = [self.velocity[name][rows] for name in own]
        correction = [self.correction[name][rows] for name in own]
        # each operation on all tensors is one kernel on a GPU
        torch._foreach_mul_(velocity, settings.momentum)
        torch._foreach_add_(
            velocity, torch._foreach_add(changes, before, alpha=settings.weight_decay)
        )
        steps = torch._foreach_sub(correction, velocity)
        torch._foreach_mul_(steps, self.lr)
        torch._foreach_add_(
            before, [step.where(_broadcast_rows(is_active, step), 0) for step in steps]
        )
        return losses.where(is_active, 0)

    def _loss(
        self,
        weights: Weights,
        inputs: Tensor,
        targets: Tensor,
        sample_weights: Tensor,
        statistics: Tensor,
        anchor: Weights,
    ) -> Tensor:
        """The loss of one client's batch."""
        *_, bias = weights.values()
        outputs = functional_call(self.model, weights, (inputs,))
        loss = (
            sample_weights * losses_of(self.objective, outputs, targets, statistics, bias)
        ).sum()
        if self.objective.is_proximal:
            loss = loss + self.objective.proximal_term(weights.values(), anchor.values())
        return loss


def _zero_rows(weights: Weights, height: int) -> Weights:
    """Zeros in the shape of these weights for each of several clients."""
    return {name: tensor.new_zeros(height, *tensor.shape) for name, tensor in weights.items()}


def _broadcast_rows(rows: Tensor, like: Tensor) -> Tensor:
    """One number per row, shaped to broadcast over the other dimensions of `like`."""
    return rows.view(-1, *[1] * (like.dim() - 1))
