"""The stacked trainer, `batched` in config and records: a cohort as one program with a client axis,
because a single client does not use a GPU to capacity."""

from __future__ import annotations

import gc
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import vmap

from cohort.core import lazy
from cohort.kernels import padding
from cohort.training.contract import check_gradients, losses_of
from cohort.training.ledger import Cursor, strip_prefix
from cohort.training.objectives import Objective, output_bias
from cohort.training.trainers.trainer import Trained, Trainer
from cohort.training.updates import LocalWork, Weights, local_steps, stack

if TYPE_CHECKING:
    from cohort.kernels import layers
    from cohort.training.task import Task
else:
    layers = lazy("cohort.kernels.layers")  # needs Triton, which comes with PyTorch for GPUs

WARM_UP = 2  # runs before a CUDA graph is captured, in which libraries initialize themselves
HEIGHTS = 8  # the number of heights to which the stack shrinks as clients finish their steps


class Part(NamedTuple):
    """One cell's share of a stack: its trainer and the arguments of `_train`."""

    trainer: StackedTrainer
    works: Sequence[LocalWork]
    anchor: Weights
    cursor: Cursor


Row = tuple[Part, LocalWork, list[tuple[int, np.ndarray]]]
"""A client in a stack: its part, its work, and the steps of this work."""


class StackedTrainer(Trainer):
    """Trains all clients of its cell at once, step by step, as one stack."""

    name: ClassVar[str] = "batched"

    def prepare(self) -> None:
        self.batch = min(self.settings.batch, max(map(len, self.shards)))
        self.labels = self.samples.labels.cpu()
        self.network = self.network_on_device()
        self.stacks = Stacks()

    def network_on_device(self) -> nn.Module:
        """The network that stacks call: on a GPU with kernels for many clients, if Triton is there
        and they are right on this GPU for batches of this size."""
        samples, precision = self.samples, self.settings.precision
        plain = padding.with_padding(self.model)
        if not samples.labels.is_cuda or precision == "float64" or samples.scale is None:
            return plain
        reason = "Triton is not installed"
        if importlib.util.find_spec("triton"):
            network = layers.with_kernels(self.model, precision)
            indices = torch.arange(self.batch, device=samples.labels.device) % len(samples.labels)
            reason = layers.check(self.model, network, samples.inputs(indices), precision)
            if not reason:
                return network
        print(f"trained without kernels for many clients: {reason}", flush=True)
        return plain

    @classmethod
    def unsupported_reason(cls, task: Task) -> str:
        if task.settings.optimizer != "sgd":
            return f"the batched trainer has no {task.settings.optimizer}"
        if not all(parameter.requires_grad for parameter in task.model.parameters()):
            return "the batched trainer freezes no weights"
        for layer in task.model.modules():
            is_random = isinstance(layer, nn.modules.dropout._DropoutNd | nn.RNNBase)
            is_stateful = bool(list(layer.buffers(recurse=False)))
            is_supported = not is_random or padding.is_random(layer)
            if not is_supported or (is_stateful and not padding.is_normalization(layer)):
                return f"{type(layer).__name__} cannot be batched over clients"
        return ""

    def _train(self, works: Sequence[LocalWork], anchor: Weights, cursor: Cursor) -> Trained:
        if done := cursor.begin_call():  # all clients finish together
            return Trained(strip_prefix(done, "weights/"), done["losses"], done["steps"].tolist())
        trained = self.train_part(Part(self, works, anchor, cursor))
        results = {f"weights/{name}": tensor for name, tensor in trained.weights.items()}
        results |= {"losses": trained.losses, "steps": torch.tensor(trained.steps)}
        cursor.client_done(lambda: results)
        return trained

    def train_part(self, part: Part) -> Trained:
        """Train one part. Stacks of several cells override this (`job/stacking.py`)."""
        (answer,) = self.stacks.train([part])
        if isinstance(answer, Exception):
            raise answer
        return answer


class Stacks:
    """Trains parts as one stack, or as smaller ones if the memory is exceeded or a part fails."""

    def __init__(self) -> None:
        self.stack: Stack | None = None
        self.max_height = sys.maxsize  # clients that fit into the memory

    def train(self, parts: Sequence[Part]) -> list[Trained | Exception]:
        """Train the parts; return each one's result, or the exception that it raised."""
        height = sum(len(part.works) for part in parts)
        if height <= self.max_height:
            try:
                return [*self._stack_for(parts).train(parts)]
            except Exception as error:
                self.stack = None  # it may have the objective of the cell that fails
                is_memory = isinstance(error, torch.cuda.OutOfMemoryError)
                if height == 1 or (len(parts) == 1 and not is_memory):
                    return [error]
            if is_memory:
                self.max_height = -(-height // 2)
                print(f"the memory is too small for {height} clients at once", flush=True)
        size = min(self.max_height, -(-height // 2))
        if len(parts) > 1:
            return [answer for chunk in _chunks(parts, size) for answer in self.train(chunk)]
        (part,) = parts
        pieces = (part.works[begin : begin + size] for begin in range(0, height, size))
        return [reduce(_join, (self.train([part._replace(works=works)])[0] for works in pieces))]

    def _stack_for(self, parts: Sequence[Part]) -> Stack:
        if self.stack is None or not self.stack.fits(parts):
            objectives = self.stack.objectives if self.stack else []
            self.stack = None
            gc.collect()  # it refers to itself, and its memory is needed
            torch.cuda.empty_cache()
            self.stack = Stack(parts, objectives)
        return self.stack


def _join(first: Trained | Exception, second: Trained | Exception) -> Trained | Exception:
    """Concatenate the results of two consecutive chunks of a part; the first exception wins."""
    if isinstance(first, Exception) or isinstance(second, Exception):
        return first if isinstance(first, Exception) else second
    rows = {name: torch.cat([rows, second.weights[name]]) for name, rows in first.weights.items()}
    return Trained(rows, torch.cat([first.losses, second.losses]), first.steps + second.steps)


def _chunks(parts: Sequence[Part], height: int) -> list[list[Part]]:
    """Cut parts, in their order, into chunks of up to so many clients, or of one part with more."""
    chunks, room = list[list[Part]](), 0
    for part in parts:
        room -= len(part.works)
        if room < 0:
            chunks.append([])
            room = height - len(part.works)
        chunks[-1].append(part)
    return chunks


class Stack:
    """The tensors of up to `height` clients, one row each: weights, buffers (the running statistics
    of normalization layers), velocities, corrections (of SCAFFOLD), learning rates, numbers of
    their objectives, these objectives' statistics, and for a proximal term the global weights
    (`anchor`). They keep their memory from round to round, as CUDA graphs require. Clients with the
    most steps come first. A batch that is shorter than the others is padded with one of the
    client's samples, which has weight 0 in the batch mean and does not count in normalization.

    All parts have one network, data set, batch and optimizer, and no row depends on the others.
    """

    def __init__(self, parts: Sequence[Part], objectives: Sequence[Objective] = ()):
        trainer = parts[0].trainer
        self.model, self.settings, self.batch = trainer.model, trainer.settings, trainer.batch
        self.network = trainer.network
        first = torch.zeros(1, dtype=torch.int64, device=trainer.samples.labels.device)
        self.random_calls = padding.random_calls(self.model, trainer.samples.inputs(first))
        self.samples, self.augmentation = trainer.samples, trainer.augmentation
        all_objectives = *objectives, *(part.trainer.objective for part in parts)
        self.objectives = [*dict.fromkeys(all_objectives)]
        self.height = height = sum(len(part.works) for part in parts)
        bias = output_bias(self.model).detach()
        state, trained = self.model.state_dict(), dict(self.model.named_parameters())
        self.rows = {name: value.new_zeros(height, *value.shape) for name, value in state.items()}
        self.weights = {name: self.rows[name] for name in trained}
        self.buffers = {name: self.rows[name] for name in self.rows.keys() - trained}
        self.velocity, self.correction = _copy(self.weights), _copy(self.weights)
        is_proximal = any(objective.is_proximal for objective in self.objectives)
        self.anchor = _copy(self.weights) if is_proximal else {}
        self.statistics, self.lr = bias.new_zeros(height, len(bias)), bias.new_zeros(height)
        self.objective_numbers = self.samples.labels.new_zeros(height)
        self.step = CudaGraphFunction(self._step, [*self.rows.values(), *self.velocity.values()])
        self.inputs: Callable[..., Tensor] = self._inputs
        if self.samples.values.is_cuda:
            self.inputs = CudaGraphFunction(self._inputs)

    def fits(self, parts: Sequence[Part]) -> bool:
        """Whether this stack was made for these parts' objectives, and has room for them."""
        height = sum(len(part.works) for part in parts)
        objectives = {part.trainer.objective for part in parts}
        return height <= self.height and objectives <= {*self.objectives}

    def train(self, parts: Sequence[Part]) -> list[Trained]:
        """Do the works of all parts."""
        works = [(part, work) for part in parts for work in part.works]
        rows = [(part, work, [*work.steps(part.trainer.settings)]) for part, work in works]
        counts = np.array([len(steps) for *_, steps in rows])
        order = np.argsort(-counts, kind="stable")
        ordered = [rows[row] for row in order]
        self._fill(ordered)
        samples, shares, draws = self._lay_out(ordered)
        factors = self._draw_factors(ordered, len(samples))
        losses = shares.new_zeros(self.height)  # summed step by step, in whatever stack
        unit = -(-self.height // HEIGHTS)  # of heights, for each of which a CUDA graph is captured
        for step in range(len(samples)):
            height = min(-(-int((counts > step).sum()) // unit) * unit, self.height)
            chosen = samples[step, :height]
            inputs = self.inputs(chosen, *(numbers[step, :height] for numbers in draws))
            targets, weights = self.samples.labels[chosen], shares[step, :height]
            step_factors = (factor[step, :height] for factor in factors)
            losses[:height] += self.step(inputs, targets, weights, *step_factors)
        back, trained, end = np.argsort(order), list[Trained](), 0
        for part in parts:
            begin, end = end, end + len(part.works)
            steps = counts[begin:end]
            part_rows = torch.from_numpy(back[begin:end]).to(losses.device)
            means = losses[part_rows] / torch.from_numpy(steps).to(losses)
            weights_of = {name: tensor[part_rows] for name, tensor in self.rows.items()}
            trained.append(Trained(weights_of, means, steps.tolist()))
        return trained

    def _fill(self, rows: Sequence[Row]) -> None:
        """Set each client's row: its weights, correction and label statistics, and velocity 0."""
        filled, classes, statistics = slice(len(rows)), self.statistics.shape[1], []
        begun = stack([work.weights for _, work, _ in rows])
        corrected = [work.correction() for _, work, _ in rows]
        zeros = {name: tensor.new_zeros(tensor.shape[1:]) for name, tensor in self.weights.items()}
        for name, tensor in self.rows.items():
            tensor[filled] = begun[name]
        for name in self.weights:
            self.velocity[name].zero_()
            corrections = [correction.get(name, zeros[name]) for correction in corrected]
            self.correction[name][filled] = torch.stack(corrections)
            if self.anchor:
                self.anchor[name][filled] = torch.stack([part.anchor[name] for part, *_ in rows])
        for part, work, _ in rows:
            counts = part.trainer.labels[work.samples].bincount(minlength=classes)
            counts = counts.to(self.statistics.dtype)
            statistics.append(part.trainer.objective.label_statistics(counts))
        self.statistics[filled] = torch.stack(statistics).to(self.statistics)
        numbers = [self.objectives.index(part.trainer.objective) for part, *_ in rows]
        self.objective_numbers[filled] = torch.tensor(numbers).to(self.objective_numbers)
        self.lr[filled] = torch.tensor([work.lr for _, work, _ in rows], dtype=self.lr.dtype)

    def _lay_out(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Tensors by step, client and place in the batch: the index of each sample, its weight in
        the mean of its batch and, if there is an augmentation, the random numbers for it."""
        shape = len(rows[0][2]), self.height, self.batch  # the first one has the most steps
        samples, shares = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        draws = np.zeros((*shape, self.augmentation.numbers))
        for row, (part, work, steps) in enumerate(rows):
            indices, numbers = work.samples, None
            if steps and self.augmentation.numbers:
                numbers = part.trainer.augmentation_draws(len(indices), work.client, work.round)
            per_epoch = local_steps(len(indices), self.settings)[1]
            samples[:, row] = indices[:1] if len(indices) else 0  # what batches are padded with
            for position, (step, batch) in enumerate(steps):
                filled = position, row, slice(len(batch))
                samples[filled], shares[filled] = indices[batch], 1 / len(batch)
                if numbers is not None:
                    draws[filled] = numbers[step // per_epoch][batch]
        device, std = self.samples.labels.device, self.samples.std
        on_device = [torch.from_numpy(draws).to(device)] if self.augmentation.numbers else []
        return torch.from_numpy(samples).to(device), torch.from_numpy(shares).to(std), on_device

    def _draw_factors(self, rows: Sequence[Row], length: int) -> list[Tensor]:
        """The factors of random layers, by call, step, client and sample, drawn as serially."""
        shape, device = (length, self.height, self.batch), self.samples.labels.device
        calls = self.random_calls
        factors = [torch.ones(shape + size, dtype=dtype, device=device) for _, size, dtype in calls]
        for row, (part, work, steps) in enumerate(rows if factors else []):
            torch.manual_seed(work.dropout_seed(part.trainer.settings))
            for position, (_, batch) in enumerate(steps):
                batch_factors = padding.draw(calls, len(batch), device)
                for factor, values in zip(factors, batch_factors, strict=True):
                    factor[position, row, : len(batch)] = values
        return factors

    def _inputs(self, chosen: Tensor, *draws: Tensor) -> Tensor:
        """The network's inputs of a step, augmented if there are random numbers for that."""
        flat = chosen.flatten()  # (client * sample)
        if not draws:
            inputs = self.samples.inputs(flat)
        else:
            numbers = draws[0].flatten(0, 1)  # (client * sample, number)
            images = self.samples.scaled(flat)
            inputs = self.samples.standardized(self.augmentation.apply(images, numbers))
        return inputs.unflatten(0, chosen.shape)  # (client, sample, ...)

    def _step(self, inputs: Tensor, targets: Tensor, shares: Tensor, *factors: Tensor) -> Tensor:
        """Take one SGD step with the first clients, one per row of `inputs`; return their losses.
        `shares` weigh the samples in the mean loss of their batch; a client whose samples
        all weigh 0 does not change, and its loss is 0. `factors` are those of random layers."""
        settings, rows = self.settings, slice(len(inputs))
        before = [tensor[rows] for tensor in self.weights.values()]
        leaves = [tensor.detach().requires_grad_() for tensor in before]
        with torch.enable_grad():
            params = dict(zip(self.weights, leaves, strict=True))
            state = params | {name: tensor[rows] for name, tensor in self.buffers.items()}
            outputs = vmap(partial(padding.call, self.network))(state, inputs, shares > 0, *factors)
            losses = self._losses(params, outputs, targets, shares)
            # rows are independent, so the gradient of the sum is that of each
            changes = [*torch.autograd.grad(losses.sum(), leaves, materialize_grads=True)]
        if settings.clip:
            # (client) each, of the gradient (client, *parameter)
            squares = [change.flatten(1).square().sum(dim=1) for change in changes]
            norms = sum(squares[1:], squares[0]).sqrt()  # each row's in the same order always
            scales = (settings.clip / (norms + 1e-6)).clamp(max=1)  # as in clip_grad_norm_
            changes = [change * _broadcast_rows(scales, change) for change in changes]
        active = partial(_only_rows, shares.any(dim=1))
        velocity = [tensor[rows] for tensor in self.velocity.values()]
        correction = [tensor[rows] for tensor in self.correction.values()]
        # each operation on all tensors is one kernel on a GPU
        torch._foreach_mul_(velocity, settings.momentum)
        decayed = torch._foreach_add(changes, before, alpha=settings.weight_decay)
        torch._foreach_add_(velocity, decayed)
        steps = torch._foreach_sub(correction, velocity)
        moves = [active(step * _broadcast_rows(self.lr[rows], step)) for step in steps]
        torch._foreach_add_(before, moves)
        return active(losses.detach())

    def _losses(self, params: Weights, outputs: Tensor, targets: Tensor, shares: Tensor) -> Tensor:
        """The loss of each row's batch, by its own objective. Every objective sees all rows, those
        of others without their values, so that it neither fails on them nor changes them."""
        rows, total = slice(len(outputs)), shares.new_zeros(len(outputs))
        *_, bias = params.values()
        for number, objective in enumerate(self.objectives):
            is_own = self.objective_numbers[rows] == number if len(self.objectives) > 1 else None
            only = partial(_only_rows, is_own)
            of_sample = vmap(partial(losses_of, objective))
            losses = of_sample(only(outputs), targets, self.statistics[rows], only(bias))
            check_gradients(objective, losses)
            loss = (shares * losses).sum(dim=1)
            if objective.is_proximal:
                term = vmap(objective.proximal_term)
                starts = [self.anchor[name][rows] for name in params]
                loss = loss + term([*map(only, params.values())], [*map(only, starts)])
            total = total + only(loss)
        return total


def _copy(weights: Weights) -> Weights:
    return {name: tensor.clone() for name, tensor in weights.items()}


def _only_rows(chosen: Tensor | None, tensor: Tensor) -> Tensor:
    """The tensor with zeros in all rows but the chosen ones; None chooses all."""
    return tensor if chosen is None else tensor.where(_broadcast_rows(chosen, tensor), 0)


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
        """Warm up, restore what that changed, and capture, which runs nothing. None if it fails."""
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
