"""The stacked trainer, `batched` in config and records: a cohort as one program with a client axis,
because a single client does not use a GPU to capacity."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.functional import cross_entropy

from cohort.data.samples import Samples
from cohort.settings import Settings
from cohort.training.contract import losses_of
from cohort.training.evaluation import evaluation_batches
from cohort.training.ledger import Cursor, strip_prefix
from cohort.training.objectives import Objective, output_bias
from cohort.training.trainers.base import Trained, Trainer
from cohort.training.updates import LocalWork, Updates, Weights, local_steps, stack

if TYPE_CHECKING:
    from cohort.training.task import Task

WARM_UP = 2  # runs before a CUDA graph is captured, in which libraries initialize themselves
HEIGHTS = 8  # the number of heights to which the stack shrinks as clients finish their steps


class StackedTrainer(Trainer):
    """Trains all clients at once, step by step. Clients with the most steps come first in the
    stack. A batch that is shorter than the others is padded with one of the client's samples, which
    has weight 0 in the batch mean."""

    name: ClassVar[str] = "batched"

    def prepare(self) -> None:
        self.batch = min(self.settings.batch, max(map(len, self.shards)))
        self.labels = self.samples.labels.cpu()
        self.stack = Stack(self.model, self.settings, self.objective, height=0)
        self.inputs_of: Callable[..., Tensor] = self._inputs
        if self.samples.values.is_cuda:
            self.inputs_of = CudaGraphFunction(self._inputs)

    @classmethod
    def refusal(cls, task: Task) -> str:
        if task.settings.optimizer != "sgd":
            return f"the batched trainer has no {task.settings.optimizer}"
        layer = unbatchable_layer(task.model)
        return f"{layer} cannot be batched over clients" if layer else ""

    def _train(self, works: Sequence[LocalWork], anchor: Weights, cursor: Cursor) -> Trained:
        if done := cursor.next_call():  # all clients finish together
            return strip_prefix(done, "weights/"), done["losses"], done["steps"].tolist()
        steps = [list(work.steps(self.settings)) for work in works]
        counts = np.array([len(own) for own in steps])
        rows = np.argsort(-counts, kind="stable")
        ordered = [works[row] for row in rows]
        if len(works) > self.stack.height:
            self.stack = Stack(self.model, self.settings, self.objective, len(works))
        self.stack.fill(ordered, anchor, self.labels)
        samples, shares, draws = self._lay_out(ordered, [steps[row] for row in rows])
        losses = torch.zeros_like(shares[:, :, 0])
        for step in range(len(samples)):
            height = self._height(int((counts > step).sum()))
            chosen = samples[step, :height]
            inputs = self.inputs_of(chosen, *(drawn[step, :height] for drawn in draws))
            targets, weights = self.samples.labels[chosen], shares[step, :height]
            losses[step, :height] = self.stack.step(inputs, targets, weights)
        back = torch.from_numpy(np.argsort(rows)).to(losses.device)
        means = losses.sum(dim=0)[back] / torch.from_numpy(counts).to(losses)
        trained = {name: tensor[back] for name, tensor in self.stack.weights.items()}
        results = {f"weights/{name}": tensor for name, tensor in trained.items()}
        results |= {"losses": means, "steps": torch.from_numpy(counts)}
        cursor.client_done(lambda: results)
        return trained, means, counts.tolist()

    @torch.no_grad()
    def losses(self, updates: Updates, samples: Samples, indices: Tensor) -> np.ndarray:
        self.model.eval()
        sums = torch.zeros(len(updates.sizes), dtype=torch.float64, device=indices.device)
        for chunk in evaluation_batches(samples, indices):
            inputs, targets = samples.inputs(chunk), samples.labels[chunk]
            call = partial(functional_call, self.model)
            outputs = vmap(call, in_dims=(0, None))(updates.weights, (inputs,))
            by_client = vmap(partial(cross_entropy, reduction="sum"), in_dims=(0, None))
            sums += by_client(outputs, targets)
        return (sums / len(indices)).cpu().numpy()

    def _lay_out(
        self, works: Sequence[LocalWork], steps: Sequence[list[tuple[int, np.ndarray]]]
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Tensors by step, client and place in the batch: the index of each sample, its weight in
        the mean of its batch and, if there is an augmentation, the random numbers for it."""
        shape = max(map(len, steps)), self.stack.height, self.batch
        samples, shares = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        draws = np.zeros((*shape, self.augmentation.numbers))
        for row, (work, own) in enumerate(zip(works, steps, strict=True)):
            indices, drawn = work.samples, None
            if own and self.augmentation.numbers:
                drawn = self.augmentation_draws(len(indices), work.client, work.round)
            per_epoch = local_steps(len(indices), self.settings)[1]
            samples[:, row] = indices[:1] if len(indices) else 0  # what batches are padded with
            for position, (step, batch) in enumerate(own):
                filled = position, row, slice(len(batch))
                samples[filled], shares[filled] = indices[batch], 1 / len(batch)
                if drawn is not None:
                    draws[filled] = drawn[step // per_epoch][batch]
        device, std = self.samples.labels.device, self.samples.std
        on_device = [torch.from_numpy(draws).to(device)] if self.augmentation.numbers else []
        return torch.from_numpy(samples).to(device), torch.from_numpy(shares).to(std), on_device

    def _height(self, active: int) -> int:
        """The height of the stack for this many clients that still train: one of HEIGHTS, because a
        CUDA graph is captured for each height."""
        unit = -(-self.stack.height // HEIGHTS)
        return min(-(-active // unit) * unit, self.stack.height)

    def _inputs(self, chosen: Tensor, *draws: Tensor) -> Tensor:
        """The network's inputs of a step, augmented if there are random numbers for that."""
        flat = chosen.flatten()
        if not draws:
            inputs = self.samples.inputs(flat)
        else:
            images, numbers = self.samples.scaled(flat), draws[0].flatten(0, 1)
            inputs = self.samples.standardized(self.augmentation.apply(images, numbers))
        return inputs.unflatten(0, chosen.shape)


class Stack:
    """The tensors of up to `height` clients, one row each: weights, velocities, corrections (of
    SCAFFOLD) and the objective's statistics; and the `anchor`, the global weights of a proximal
    term. They keep their memory from round to round, as CUDA graphs require."""

    def __init__(self, model: nn.Module, settings: Settings, objective: Objective, height: int):
        self.model, self.settings, self.objective, self.height = model, settings, objective, height
        parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
        bias = output_bias(model).detach()
        zeros = {name: own.new_zeros(height, *own.shape) for name, own in parameters.items()}
        self.weights, self.velocity, self.correction = zeros, _copy(zeros), _copy(zeros)
        self.anchor = _copy(parameters)
        self.statistics, self.lr = bias.new_zeros(height, len(bias)), bias.new_zeros(())
        self.step = CudaGraphFunction(self._step, [*self.weights.values(), *self.velocity.values()])

    def fill(self, works: Sequence[LocalWork], anchor: Weights, labels: Tensor) -> None:
        """Set each client's row for a round: its own weights and correction, statistics of its
        label counts, and velocity 0."""
        rows = slice(len(works))
        begun = stack([work.weights for work in works])
        corrected = stack([work.correction() for work in works])
        for name, tensor in self.anchor.items():
            tensor.copy_(anchor[name])
            self.weights[name][rows] = begun[name]
            self.velocity[name].zero_()
            self.correction[name][rows] = corrected.get(name, 0)
        classes = self.statistics.shape[1]
        counts = [labels[work.samples].bincount(minlength=classes) for work in works]
        by_client = torch.stack(counts).to(self.statistics)
        self.statistics[rows] = torch.stack(list(map(self.objective.label_statistics, by_client)))
        self.lr.fill_(works[0].lr)

    def _step(self, inputs: Tensor, targets: Tensor, sample_weights: Tensor) -> Tensor:
        """Take one SGD step with the first clients, one per row of `inputs`; return their losses.
        `sample_weights` weigh the samples in the mean loss of their batch; a client whose samples
        all weigh 0 does not change, and its loss is 0."""
        settings, rows = self.settings, slice(len(inputs))
        own = {name: tensor[rows] for name, tensor in self.weights.items()}
        of_each = vmap(grad_and_value(self._loss), in_dims=(0, None, 0, 0, 0, 0))
        batch = inputs, targets, sample_weights, self.statistics[rows]
        gradients, losses = of_each(own, self.anchor, *batch)
        if settings.clip:
            squares = [change.flatten(1).square().sum(dim=1) for change in gradients.values()]
            norms = torch.stack(squares).sum(dim=0).sqrt()
            factors = (settings.clip / (norms + 1e-6)).clamp(max=1)  # as in clip_grad_norm_
            for name, change in gradients.items():
                gradients[name] = change * _broadcast_rows(factors, change)
        is_active = sample_weights.any(dim=1)
        before, changes = list(own.values()), [gradients[name] for name in own]
        velocity = [self.velocity[name][rows] for name in own]
        correction = [self.correction[name][rows] for name in own]
        # each operation on all tensors is one kernel on a GPU
        torch._foreach_mul_(velocity, settings.momentum)
        decayed = torch._foreach_add(changes, before, alpha=settings.weight_decay)
        torch._foreach_add_(velocity, decayed)
        steps = torch._foreach_sub(correction, velocity)
        torch._foreach_mul_(steps, self.lr)
        active = [step.where(_broadcast_rows(is_active, step), 0) for step in steps]
        torch._foreach_add_(before, active)
        return losses.where(is_active, 0)

    def _loss(self, weights: Weights, anchor: Weights, *batch: Tensor) -> Tensor:
        """The loss of one client's batch: its inputs, targets, weights of samples, statistics."""
        inputs, targets, sample_weights, statistics = batch
        *_, bias = weights.values()
        outputs = functional_call(self.model, weights, (inputs,))
        losses = losses_of(self.objective, outputs, targets, statistics, bias)
        loss = (sample_weights * losses).sum()
        if self.objective.is_proximal:
            loss = loss + self.objective.proximal_term(weights.values(), anchor.values())
        return loss


def _copy(weights: Weights) -> Weights:
    return {name: tensor.clone() for name, tensor in weights.items()}


def _broadcast_rows(rows: Tensor, like: Tensor) -> Tensor:
    """One number per row, shaped to broadcast over the other dimensions of `like`."""
    return rows.view(-1, *[1] * (like.dim() - 1))


CapturedGraph = tuple[torch.cuda.CUDAGraph, list[Tensor], Tensor]
"""A CUDA graph with the tensors that hold its inputs and its output."""


class CudaGraphFunction:
    """A function of tensors that may also change some tensors in place, captured as a CUDA graph
    once for each combination of argument shapes, then replayed. Each call overwrites the result of
    the one before, whatever its shapes. All other tensors that it reads or changes must keep their
    memory. On a CPU, and where capturing fails, the function is called directly."""

    def __init__(self, function: Callable[..., Tensor], changes: Iterable[Tensor] = ()):
        self.function, self.changes = function, list(changes)
        self.captures: dict[tuple[torch.Size, ...], CapturedGraph | None] = {}
        self._pool: Any = None  # of memory, which the graphs share

    def __call__(self, *arguments: Tensor) -> Tensor:
        if not arguments[0].is_cuda:
            return self.function(*arguments)
        shapes = tuple(argument.shape for argument in arguments)
        if shapes not in self.captures:
            self.captures[shapes] = self._capture(*arguments)
        captured = self.captures[shapes]
        if captured is None:
            return self.function(*arguments)
        graph, inputs, output = captured
        for buffer, argument in zip(inputs, arguments, strict=True):
            buffer.copy_(argument)
        graph.replay()
        return output

    def _capture(self, *arguments: Tensor) -> CapturedGraph | None:
        """Warm up, restore the tensors that this changed, and capture, which executes nothing. None
        if capturing fails."""
        inputs = [argument.clone() for argument in arguments]
        before = [tensor.clone() for tensor in self.changes]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self.function(*inputs)
        torch.cuda.current_stream().wait_stream(side)
        for tensor, value in zip(self.changes, before, strict=True):
            tensor.copy_(value)
        graph = torch.cuda.CUDAGraph()
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        was_enabled = gc.isenabled()
        gc.disable()  # an older CUDA graph cannot be freed during a capture
        try:
            with torch.cuda.graph(graph, self._pool):
                return graph, inputs, self.function(*inputs)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            print(f"no CUDA graph could be captured, so steps are slower ({reason})", flush=True)
            return None
        finally:
            if was_enabled:
                gc.enable()


def unbatchable_layer(network: nn.Module) -> str:
    """The kind of a layer that cannot be trained for several clients as one; empty without any."""
    for layer in network.modules():
        is_random_or_recurrent = isinstance(layer, nn.modules.dropout._DropoutNd | nn.RNNBase)
        # padding a batch would change the statistics of batch normalization
        if is_random_or_recurrent or list(layer.buffers(recurse=False)):
            return type(layer).__name__
    return ""
