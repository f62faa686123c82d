"""What a server rule is: global weights and stacked updates in, new global weights out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from cohort.core.components import Component
from cohort.core.metric import Metric

if TYPE_CHECKING:
    from cohort.training.updates import Updates, Weights


class Merged(NamedTuple):
    """New global weights, what the rule remembers, and what it measured on the way."""

    weights: Weights
    memory: Weights
    measured: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class ServerRule(Component):
    """What becomes of the weights that are trained; what is not, the statistics of normalizations, is averaged whatever the rule, since a
    variance that is overshot could be negative.

    What a rule remembers between rounds is plain tensors, which a checkpoint can hold: those of `begin`, and later ones that are named
    after a weight, `{weight}/...`, and have its shape.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {}
    """What it records of its own, by the recorded name."""

    assumes_sgd: ClassVar[bool] = False
    """Whether it reads gradients off the updates, and so needs plain SGD, all steps at once."""

    copies: ClassVar[int] = 1
    """How many times the size of the model goes each way between the server and a client."""

    def begin(self, weights: Weights) -> Weights:
        """What it remembers before the first round."""
        return {}

    def control_variate(self, memory: Weights, client: int) -> Weights:
        """What is added to a client's weights after each of its steps, times the learning rate; nothing for most rules."""
        return {}

    def models_held(self, clients: int) -> int:
        """How many models' worth of memory it takes in the end."""
        return 0

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        """The new global weights, and what it remembers."""
        raise NotImplementedError
