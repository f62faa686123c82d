"""The base of all server rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from cohort.core.components import Component
from cohort.core.metric import Metric

if TYPE_CHECKING:
    from cohort.training.updates import Updates, Weights


class Merged(NamedTuple):
    """A server rule's result: new global weights, its new memory, and the metrics it measured."""

    weights: Weights
    memory: Weights
    measured: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class ServerRule(Component):
    """Merges the updates of a cohort into new global weights.

    A rule receives the trainable weights only: statistics of normalization layers are always
    averaged, because a rule that extrapolates could make a variance negative. Its memory between
    rounds is plain tensors, which a checkpoint can hold: those that `begin` returns, and any that
    are added later, named `{weight}/...` with the shape of that weight.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {}
    """The metrics that it records itself, by recorded name."""

    assumes_sgd: ClassVar[bool] = False
    """Whether it infers gradients from updates and so needs uninterrupted steps of plain SGD."""

    copies: ClassVar[int] = 1
    """How many copies of the model's size the server and a client send each other."""

    def begin(self, weights: Weights, redraw: Callable[[], Weights]) -> Weights:
        """The rule's memory before the first round. `redraw` draws the weights of another random
        network of the same model."""
        return {}

    def control_variate(self, memory: Weights, client: int) -> Weights:
        """The correction that a client adds to its weights after each step, times the learning
        rate; empty for rules without control variates."""
        return {}

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        """Merge updates into `weights`, the global weights from which they began."""
        raise NotImplementedError
