"""Server rules, which merge updates into new global weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from cohort.core.components import Catalog, Component, parameter
from cohort.core.lazy import lazy
from cohort.core.metric import Metric

if TYPE_CHECKING:
    import torch

    from cohort.training.updates import Updates, Weights
else:
    torch = lazy("torch")


class Merged(NamedTuple):
    """A server rule's result: new global weights, its new memory, and the metrics it measured."""

    weights: Weights
    memory: Weights
    measured: dict[str, float]


class ServerRule(Component):
    """Merges the updates of a cohort into new global weights. A rule receives the trainable weights
    only: statistics of normalization layers are always averaged, because a rule that extrapolates
    could make a variance negative. Its memory between rounds is plain tensors: those that `begin`
    returns, and any that are added later, named `{weight}/...` and of the shape of that weight."""

    metrics: ClassVar[Mapping[str, Metric]] = {}
    """The metrics that it records itself, by recorded name."""
    assumes_sgd: ClassVar[bool] = False
    """Whether it infers gradients from updates and so needs uninterrupted steps of plain SGD."""
    copies: ClassVar[int] = 1
    """How many copies of the model's size the server and a client send each other."""

    def begin(self, weights: Weights, redraw: Callable[[], Weights]) -> Weights:
        """The memory before the first round. `redraw` draws other random weights of the model."""
        return {}

    def control_variate(self, memory: Weights, client: int, lr: float) -> Weights:
        """The correction that a client adds to its weights after each step, times the learning rate
        of the round; empty for rules without control variates."""
        return {}

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        """Merge updates into `weights`, the global weights from which they began."""
        raise NotImplementedError


class Average(ServerRule):
    """The mean of the local weights, weighted by data size or as the selector says."""

    name: ClassVar[str] = "average"

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        return Merged(updates.merged(weights), memory, {})


@dataclass(frozen=True, kw_only=True)
class FedNova(ServerRule):
    """Divides each client's update by its effective steps, then multiplies the mean of the
    normalized updates by the mean of the effective steps, both weighted by data size (NIID-Bench).
    The sum of all factors, which is 1 for FedAvg, can be far above 1, most of all with `equal`
    shares. Shares of `all` clients' samples multiply it by the square of the cohort's share."""

    name: ClassVar[str] = "fednova"
    metrics: ClassVar[Mapping[str, Metric]] = {"nova_factor": Metric("Sum of the clients' factors")}
    assumes_sgd: ClassVar[bool] = True
    shares: Literal["cohort", "all", "equal"] = parameter("cohort", help="by whose size, or equal")

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        shares = updates.shares()
        if updates.factors is None and self.shares == "all":
            shares = updates.sizes / updates.samples
        elif updates.factors is None and self.shares == "equal":
            shares = torch.full_like(shares, 1 / len(shares))
        steps = updates.effective_steps().to(shares)
        factors = shares * (shares * steps).sum() / steps
        merged = replace(updates, factors=factors).merged(weights)
        return Merged(merged, memory, {"nova_factor": float(factors.sum())})


@dataclass(frozen=True, kw_only=True)
class Momentum(ServerRule):
    """Server momentum: velocity = beta * velocity + mean update; weights += lr * velocity. With
    `clip`, each update is first scaled down to at most this norm over all its weights."""

    name: ClassVar[str] = "momentum"
    metrics: ClassVar[Mapping[str, Metric]] = {
        "clipped_fraction": Metric("Updates shortened", "%", 100, digits=1),
        "largest_update": Metric("Largest norm of an update"),
    }
    beta: float = parameter(0.9, minimum=0, exclusiveMaximum=1, help="momentum of the server")
    lr: float = parameter(1.0, exclusiveMinimum=0, help="the server's learning rate")
    clip: float = parameter(0.0, minimum=0, help="largest norm of a client's update, 0: no limit")

    def begin(self, weights: Weights, redraw: Callable[[], Weights]) -> Weights:
        return {name: tensor.new_zeros(tensor.shape) for name, tensor in weights.items()}

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        norms = updates.distances(weights)
        clipped = norms > (self.clip or math.inf)
        if clipped.any():
            updates = updates.scaled(weights, (self.clip / norms).where(clipped, 1.0))
        mean = updates.merged(weights)
        velocity, moved = {}, {}
        for name, before in memory.items():
            update = mean[name] - weights[name]
            velocity[name] = self.beta * before + update
            # in this form beta 0 and a learning rate of 1 give exactly the mean
            moved[name] = mean[name] + (self.lr * velocity[name] - update)
        share = float(clipped.double().mean())
        measured = {"clipped_fraction": share, "largest_update": float(norms.max())}
        return Merged(mean | moved, velocity, measured)


# The server's control variate is stored as `{weight}/all`, client 17's as `{weight}/17`, and that
# of clients that were never chosen, unless it is zero, as `{weight}/start`.
ALL, START = "all", "start"


@dataclass(frozen=True, kw_only=True)
class Scaffold(ServerRule):
    """SCAFFOLD's averaging: a client's control variate estimates its gradient, the server's is the
    mean of all clients'. After each SGD step a client adds the learning rate times its own variate
    minus the server's. One control variate is sent along with every model. Models are averaged by
    size, as in NIID-Bench, where the paper's average is plain.

    Control variates begin at zero. In NIID-Bench's code all begin at the weights of one random
    network (`start: random`): with a cohort the server's then moves away from those of the others.

    The estimate is the client's update per step over the round's learning rate (the paper's option
    II, as in NIID-Bench), also with momentum, of which corrections are no part. With `unit: step`
    neither estimates nor corrections depend on that rate: both keep their scale while it decays.

    The server's control variate is the mean `over` all clients. FedConcat's code, which divides the
    sum of the cohort's changes by the size of the cohort, moves it faster.
    """

    name: ClassVar[str] = "scaffold"
    assumes_sgd: ClassVar[bool] = True
    copies: ClassVar[int] = 2
    start: Literal["zero", "random"] = parameter("zero", help="of the control variates")
    unit: Literal["gradient", "step"] = parameter("gradient", help="what variates estimate")
    over: Literal["all", "cohort"] = parameter("all", help="clients that a change is shared among")

    def begin(self, weights: Weights, redraw: Callable[[], Weights]) -> Weights:
        if self.start == "zero":
            return {f"{name}/{ALL}": torch.zeros_like(tensor) for name, tensor in weights.items()}
        initial = redraw().items()  # cloned, because checkpoints hold no shared memory
        return {f"{name}/{key}": value.clone() for key in (ALL, START) for name, value in initial}

    def control_variate(self, memory: Weights, client: int, lr: float) -> Weights:
        scale, variates = lr if self.unit == "step" else 1, {}
        for key in memory:
            name, _, owner = key.rpartition("/")
            if owner == ALL:
                estimate = memory.get(f"{name}/{client}", memory.get(f"{name}/{START}"))
                variate = -memory[key] if estimate is None else estimate - memory[key]
                variates[name] = variate / scale
        return variates

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        memory, before = dict(memory), memory
        lr = updates.lr if self.unit == "gradient" else 1
        clients = updates.total if self.over == "all" else len(updates.clients)
        for row, client in enumerate(updates.clients):
            steps = float(updates.steps[row])
            for name, variate in self.control_variate(before, client, 1).items():
                moved = (weights[name] - updates.weights[name][row]) / lr
                old = variate + before[f"{name}/{ALL}"]
                memory[f"{name}/{client}"] = new = moved / steps + variate
                memory[f"{name}/{ALL}"] = memory[f"{name}/{ALL}"] + (new - old) / clients
        return Merged(updates.merged(weights), memory, {})


SERVERS = Catalog("cohort.training.servers", ServerRule, (Average, FedNova, Momentum, Scaffold))
