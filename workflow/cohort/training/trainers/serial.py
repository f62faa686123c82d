"""The base of all trainers: local work in, stacked updates out. Which samples make which step is
decided by the local work itself, so trainers do the same steps and differ in rounding only. And the
serial trainer, the reference for all others: plain PyTorch, one client after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from cohort.core.randomness import generator, torch_seed
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.samples import Samples
from cohort.records.history import PROFILE
from cohort.settings import Settings
from cohort.training import contract, evaluation, ledger, objectives
from cohort.training.updates import LocalWork, Updates, Weights, Works, local_steps

if TYPE_CHECKING:
    from cohort.training.task import Task

Parameters = Iterable[nn.Parameter]
Trained = tuple[Weights, Tensor, list[int]]
"""The stacked models of some clients after their work, mean losses and numbers of steps."""


class Trainer:
    """Does the local work of a task's clients."""

    name: ClassVar[str]

    def __init__(self, task: Task):
        self.model, self.settings = task.model, task.settings
        self.objective, self.samples = task.objective, task.train_samples
        self.shards = task.shards.indices
        self.augmentation = AUGMENTATIONS[self.settings.augmentation]()
        self.prepare()

    def prepare(self) -> None:
        """Set up what the trainer needs besides its network, settings and data."""

    @classmethod
    def refusal(cls, task: Task) -> str:
        """The reason why this trainer cannot do the local work of a task; empty if it can."""
        return ""

    def lr(self, round: int) -> float:
        """The clients' learning rate in a round."""
        return self.settings.lr * self.settings.lr_decay ** (round - 1)

    def full_work(self, weights: Weights, clients: Sequence[int] | np.ndarray, round: int) -> Works:
        """The work of clients that start from the same weights and do all of J on all samples."""
        work = partial(LocalWork, round=round, weights=weights, lr=self.lr(round))
        return [work(client=int(client), samples=self.shards[client]) for client in clients]

    def train(self, works: Works, anchor: Weights, cursor: ledger.Cursor | None = None) -> Updates:
        """Do the work of each client; the order does not matter. `anchor` are the global weights,
        to which a proximal term pulls. A client without samples takes no step, and its loss is NaN.
        `cursor` says which clients were done before the run was interrupted."""
        weights, losses, steps = self._train(works, anchor, cursor or ledger.Cursor())
        sizes = [len(work.samples) for work in works]
        return Updates(
            weights,
            torch.tensor(sizes, dtype=torch.float64, device=self.samples.labels.device),
            torch.tensor(steps),
            losses,
            clients=tuple(work.client for work in works),
            total=len(self.shards),
            samples=sum(map(len, self.shards)),
            lr=works[0].lr if works else self.settings.lr,
            momentum=self.settings.momentum,
        )

    def losses(self, updates: Updates, samples: Samples, indices: Tensor) -> np.ndarray:
        """The mean loss of each client's model on the samples with these indices."""
        models = map(updates.client_weights, range(len(updates.sizes)))
        given = ((self.model, weights, samples, indices) for weights in models)
        plain = self.name == "serial"
        return np.array([evaluation.evaluate(*model, plain=plain).loss for model in given])

    def _train(self, works: Works, anchor: Weights, cursor: ledger.Cursor) -> Trained:
        """Train one client after another, from the first that is not done."""
        stacked, losses, steps = self.empty_rows(len(works)), list[Tensor](), list[int]()
        if done := cursor.next_call():
            losses, steps = list(done["losses"]), done["steps"].tolist()
            for name, rows in stacked.items():
                rows[: len(steps)] = done[f"weights/{name}"]

        def results() -> Weights:
            count = len(steps)  # a signal may have come before the step count of the last client
            done = {f"weights/{name}": rows[:count] for name, rows in stacked.items()}
            return done | {"losses": torch.stack(losses[:count]), "steps": torch.tensor(steps)}

        for row, work in enumerate(works[len(steps) :], start=len(steps)):
            own = self.train_client(work, anchor, stacked, row)
            losses.append(own.mean())
            steps.append(len(own))
            cursor.client_done(results)
        return stacked, torch.stack(losses), steps

    def empty_rows(self, count: int) -> Weights:
        """Uninitialized weights of so many clients, one row each."""
        raise NotImplementedError

    def train_client(self, work: LocalWork, anchor: Weights, stacked: Weights, row: int) -> Tensor:
        """Do one client's work: return the loss of each step, and write its weights to a row."""
        raise NotImplementedError

    def augmentation_draws(self, size: int, client: int, round: int) -> np.ndarray:
        """The random numbers that augment each of a client's samples in each epoch of a round."""
        steps, per_epoch = local_steps(size, self.settings)
        shape = (-(-steps // per_epoch), size, self.augmentation.numbers)
        if not self.augmentation.numbers:
            return np.empty(shape)
        rng = generator(self.settings.seed, "augmentation", round=round, client=client)
        return rng.random(shape)


class PlainSGD:
    """`torch.optim.SGD` up to rounding, cheaper to create for each client and round: the first of
    PyTorch's own imports its compiler, which takes a second. It overwrites the gradients."""

    def __init__(self, parameters: Parameters, lr: float, momentum: float, decay: float):
        self.parameters: list[Tensor] = list(parameters)
        self.lr, self.momentum, self.weight_decay = lr, momentum, decay
        self.velocity: list[Tensor] = []

    def zero_grad(self) -> None:
        """Set all gradients to None."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Take a step on every parameter that has a gradient."""
        moved = [parameter for parameter in self.parameters if parameter.grad is not None]
        if not moved:
            return
        changes = [parameter.grad for parameter in moved if parameter.grad is not None]
        if self.weight_decay:
            torch._foreach_add_(changes, moved, alpha=self.weight_decay)
        if self.velocity:
            torch._foreach_add_(changes, self.velocity, alpha=self.momentum)
        if self.momentum:
            self.velocity = changes
        torch._foreach_add_(moved, changes, alpha=-self.lr)


LocalOptimizer = PlainSGD | Optimizer
AfterStep = Callable[[Tensor, Tensor, Tensor], object] | None
"""What is called after each step, with the batch's loss, outputs and targets."""


class SerialTrainer(Trainer):
    """Trains one client after another, on one copy of the network, by plain PyTorch."""

    name: ClassVar[str] = "serial"

    def prepare(self) -> None:
        layers = self.model.modules()
        self.normalizations = [layer for layer in layers if isinstance(layer, _BatchNorm)]

    def empty_rows(self, count: int) -> Weights:
        self.state = self.model.state_dict()  # the network's own tensors, which each client trains
        return {name: own.new_empty(count, *own.shape) for name, own in self.state.items()}

    def train_client(self, work: LocalWork, anchor: Weights, stacked: Weights, row: int) -> Tensor:
        self.model.load_state_dict(work.weights)
        optimizer = local_optimizer(self.settings, self.model.parameters(), work.lr)
        pull_to = [anchor[name] for name, _ in self.model.named_parameters()]
        correct = _correction_step(self.model, work.correction(), work.lr)
        losses = self.run(work, optimizer, pull_to, correct)
        for name, rows in stacked.items():
            rows[row].copy_(self.state[name])
        return losses

    def run(
        self, work: LocalWork, optimizer: LocalOptimizer, anchor: Sequence[Tensor], after: AfterStep
    ) -> Tensor:
        """Do one client's work, from the network's present weights; return the loss of each step.
        `anchor` are the weights to which the objective may pull, in the order of parameters."""
        indices, losses = torch.from_numpy(work.samples), []
        if not len(indices):
            return self.samples.std.new_empty(0)
        inputs, targets = self._inputs(indices, work), self.samples.labels[indices]
        statistics, bias = self._statistics(targets, self.model)
        address = {"round": work.round, "client": work.client}
        torch.manual_seed(torch_seed(self.settings.seed, "dropout", **address))
        self.model.train()
        for step, batch in work.steps(self.settings):
            for layer in self.normalizations:  # PyTorch refuses batch statistics of one sample
                layer.train(len(batch) > 1)
            optimizer.zero_grad()
            given, labels = inputs(step, batch), _rows(targets, batch)
            outputs = self.model(given)
            loss = contract.losses_of(self.objective, outputs, labels, statistics, bias).mean()
            if self.objective.is_proximal:
                loss = loss + self.objective.proximal_term(self.model.parameters(), anchor)
            loss.backward()
            if self.settings.clip:
                clip_grad_norm_(self.model.parameters(), self.settings.clip)
            optimizer.step()
            losses.append(loss.detach())
            if after is not None:
                after(losses[-1], outputs, labels)
        return torch.stack(losses) if losses else self.samples.std.new_empty(0)

    def _statistics(self, targets: Tensor, network: nn.Module) -> tuple[Tensor, Tensor]:
        """A client's label statistics, from its labels, and its network's output bias."""
        bias = objectives.output_bias(network)
        counts = targets.bincount(minlength=len(bias)).to(bias.dtype)
        return self.objective.label_statistics(counts), bias

    def _inputs(self, indices: Tensor, work: LocalWork) -> Callable[[int, np.ndarray], Tensor]:
        """A function from a step and its batch to the network's inputs. A shard that is seen whole
        and not augmented is standardized once."""
        steps, per_epoch = local_steps(len(indices), self.settings)
        if not self.augmentation.numbers and steps < per_epoch:
            return lambda step, batch: _match_layout(self.samples.inputs(_rows(indices, batch)))
        if not self.augmentation.numbers:
            inputs = _match_layout(self.samples.inputs(indices))
            return lambda step, batch: _rows(inputs, batch)
        images = self.samples.scaled(indices)
        draws = self.augmentation_draws(len(indices), work.client, work.round)
        numbers = torch.from_numpy(draws).to(images.device)

        def augmented(step: int, batch: np.ndarray) -> Tensor:
            drawn = _rows(numbers[step // per_epoch], batch)
            changed = self.augmentation.apply(_rows(images, batch), drawn)
            return _match_layout(self.samples.standardized(changed))

        return augmented


class StepRecordingTrainer(SerialTrainer):
    """The serial trainer that also records each local step: its client, its number within J, loss
    and accuracy of its batch before the step, and the seconds that it took. It takes the same steps
    to the bit, and begins an interrupted round anew."""

    def train(self, works: Works, anchor: Weights, cursor: ledger.Cursor | None = None) -> Updates:
        self.profile: list[tuple[float, ...]] = []
        return super().train(works, anchor)

    def step_profile(self) -> np.ndarray:
        """What was recorded of each step of the last call of `train` (step, column)."""
        return np.array(self.profile, dtype=np.float64).reshape(-1, len(PROFILE) - 1)

    def run(
        self, work: LocalWork, optimizer: LocalOptimizer, anchor: Sequence[Tensor], after: AfterStep
    ) -> Tensor:
        taken, started = len(self.profile), 0.0

        def start(*_: object) -> None:
            nonlocal started
            started = time.perf_counter()

        def record(loss: Tensor, outputs: Tensor, targets: Tensor) -> None:
            if after is not None:
                after(loss, outputs, targets)
            hits = outputs.detach().argmax(dim=1) == targets
            of_batch = float(loss), float(hits.double().mean())  # waits for a GPU
            step = work.begin + len(self.profile) - taken
            self.profile.append((work.client, step, *of_batch, time.perf_counter() - started))

        with self.model.register_forward_pre_hook(start):
            return super().run(work, optimizer, anchor, record)


def _rows(tensor: Tensor, batch: np.ndarray) -> Tensor:
    """The rows of a batch; a single row is a view, not a copy."""
    if len(batch) == 1:
        return tensor[batch[0] : batch[0] + 1]
    rows = torch.from_numpy(batch).to(tensor.device)
    return tensor.index_select(0, rows) if tensor.is_contiguous() else tensor[rows]


def _match_layout(inputs: Tensor) -> Tensor:
    """Convert images to the memory layout of convolution weights, so that no step does."""
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.dim() == 4 else inputs


def _correction_step(model: nn.Module, correction: Weights, lr: float) -> AfterStep:
    """A function that moves the weights along a correction; None if there is no correction."""
    if not correction:
        return None
    moves = [(parameter, lr * correction[name]) for name, parameter in model.named_parameters()]

    @torch.no_grad()
    def move(*_: Tensor) -> None:
        for parameter, change in moves:
            parameter.add_(change)

    return move


def local_optimizer(settings: Settings, parameters: Parameters, lr: float) -> LocalOptimizer:
    """Create an optimizer for one client's local work in one round."""
    if settings.optimizer == "sgd":
        return PlainSGD(parameters, lr, settings.momentum, settings.weight_decay)
    return torch_optimizer(settings, parameters, lr)


def torch_optimizer(settings: Settings, parameters: Parameters, lr: float) -> Optimizer:
    """Create a PyTorch optimizer, which works with learning rate schedulers."""
    if settings.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=lr, weight_decay=settings.weight_decay)
    return torch.optim.SGD(parameters, lr, settings.momentum, weight_decay=settings.weight_decay)


def optimizer_state(optimizer: Optimizer, model: nn.Module) -> Weights:
    """The state of a PyTorch optimizer as tensors named `{parameter}/{key}`."""
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{names[parameter]}/{key}": torch.as_tensor(value).clone()
        for parameter, state in optimizer.state.items()
        for key, value in state.items()
        if value is not None
    }


def load_optimizer_state(optimizer: Optimizer, model: nn.Module, state: Weights) -> None:
    """Restore the state that `optimizer_state` returned."""
    parameters = dict(model.named_parameters())
    for path, value in state.items():
        name, _, key = path.rpartition("/")
        optimizer.state[parameters[name]][key] = value.clone()
