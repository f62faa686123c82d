"""The batched trainer: a cohort as one program with a client axis, because a single client does not
use a GPU to capacity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.functional import cross_entropy

from cohort.data.samples import Samples
from cohort.training.contract.checked_objective import augmented
from cohort.training.cursor import ResumableCall, strip_prefix
from cohort.training.evaluation import evaluation_batches
from cohort.training.trainers.base import Trained, Trainer
from cohort.training.trainers.batched.cuda_graph import CudaGraphFunction
from cohort.training.trainers.batched.stack import Stack
from cohort.training.trainers.local_work import LocalWork, local_steps
from cohort.training.updates import Updates, Weights

if TYPE_CHECKING:
    from cohort.training.task import Task

HEIGHTS = 8  # the number of heights to which the stack shrinks as clients finish their steps

Steps = list[tuple[int, np.ndarray]]


class BatchedTrainer(Trainer):
    """Trains all clients at once, step by step.

    Clients with the most steps come first in the stack. A batch that is shorter than the others is
    padded with one of the client's samples, which has weight 0 in the batch mean.
    """

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

    def _train(
        self, works: Sequence[LocalWork], anchor: Weights, resumable: ResumableCall
    ) -> Trained:
        if saved := resumable.finished:  # all clients finish together
            return Trained(
                strip_prefix(saved, "weights/"), saved["losses"], saved["steps"].tolist()
            )
        steps = [list(work.steps(self.settings)) for work in works]
        counts = np.array([len(own) for own in steps])
        rows = np.argsort(-counts, kind="stable")
        ordered = [works[row] for row in rows]
        interrupted = resumable.current.get("losses")  # of a stack that earlier rounds made higher
        height = len(works) if interrupted is None else interrupted.shape[1]
        self._fill_stack(ordered, anchor, height)
        samples, shares, draws = self._lay_out(ordered, [steps[row] for row in rows])
        losses = torch.zeros_like(shares[:, :, 0])
        for step in range(self._load_current(resumable, losses), len(samples)):
            height = self._height(int((counts > step).sum()))
            chosen = samples[step, :height]
            inputs = self.inputs_of(chosen, *(drawn[step, :height] for drawn in draws))
            targets, weights = self.samples.labels[chosen], shares[step, :height]
            losses[step, :height] = self.stack.step(inputs, targets, weights)
            resumable.save_if_due(
                lambda step=step: self._current_state(step, losses)  # type: ignore[misc]
            )
        back = torch.from_numpy(np.argsort(rows)).to(losses.device)
        means = losses.sum(dim=0)[back] / torch.from_numpy(counts).to(losses)
        trained = {name: tensor[back] for name, tensor in self.stack.weights.items()}
        resumable.set_finished(lambda: _pack_results(trained, means, counts))
        return Trained(trained, means, counts.tolist())

    @torch.no_grad()
    def losses(self, updates: Updates, samples: Samples, indices: Tensor) -> np.ndarray:
        self.model.eval()
        sums = torch.zeros(len(updates.sizes), dtype=torch.float64, device=indices.device)
        for chunk in evaluation_batches(samples, indices):
            inputs, targets = samples.inputs(chunk), samples.labels[chunk]

            def loss(
                weights: Weights, inputs: Tensor = inputs, targets: Tensor = targets
            ) -> Tensor:
                outputs = functional_call(self.model, weights, (inputs,))
                return cross_entropy(outputs, targets, reduction="sum")

            sums += vmap(loss)(updates.weights)
        return (sums / len(indices)).cpu().numpy()

    def _fill_stack(self, works: Sequence[LocalWork], anchor: Weights, height: int) -> None:
        """Set each client's row of the stack: its weights, correction and label counts."""
        if height > self.stack.height:
            self.stack = Stack(self.model, self.settings, self.objective, height)
        counts = [
            self.labels[work.samples].bincount(minlength=self.stack.classes) for work in works
        ]
        self.stack.fill(
            anchor,
            [work.weights for work in works],
            [work.correction() for work in works],
            torch.stack(counts),
            works[0].lr,
        )

    def _lay_out(
        self, works: Sequence[LocalWork], steps: Sequence[Steps]
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
            numbers = draws[0].flatten(0, 1)
            images = augmented(self.augmentation, self.samples.scaled(flat), numbers)
            inputs = self.samples.standardized(images)
        return inputs.unflatten(0, chosen.shape)

    def _current_state(self, step: int, losses: Tensor) -> Weights:
        """The state of the stack after a step, for a checkpoint."""
        state = {"steps": torch.tensor(step + 1), "losses": losses}
        state |= {f"weights/{name}": tensor for name, tensor in self.stack.weights.items()}
        return state | {f"velocity/{name}": tensor for name, tensor in self.stack.velocity.items()}

    def _load_current(self, resumable: ResumableCall, losses: Tensor) -> int:
        """Restore the state of an interrupted round; return how many steps were done."""
        current = resumable.take_current()
        if not current:
            return 0
        losses.copy_(current["losses"])
        for kind, tensors in (("weights/", self.stack.weights), ("velocity/", self.stack.velocity)):
            for name, saved in strip_prefix(current, kind).items():
                tensors[name].copy_(saved)
        return int(current["steps"])


def _pack_results(weights: Weights, losses: Tensor, steps: np.ndarray) -> Weights:
    """Pack all clients' weights, losses and step counts as tensors by name, for a checkpoint."""
    rows = {f"weights/{name}": tensor for name, tensor in weights.items()}
    return rows | {"losses": losses, "steps": torch.from_numpy(steps)}


def unbatchable_layer(network: nn.Module) -> str:
    """The kind of a layer that cannot be trained for several clients as one; empty without any."""
    for layer in network.modules():
        is_random_or_recurrent = isinstance(layer, nn.modules.dropout._DropoutNd | nn.RNNBase)
        # padding a batch would change the statistics of batch normalization
        if is_random_or_recurrent or list(layer.buffers(recurse=False)):
            return type(layer).__name__
    return ""
