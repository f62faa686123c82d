"""Count a network's weights, activations and operations on torch's meta device, whose tensors have
shapes but no storage: nothing is computed, and any model can be counted as it is."""

from __future__ import annotations

import functools
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from cohort.core.files import cached, code_hash
from cohort.core.lazy import lazy

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
    from torch.utils import flop_counter

    from cohort.models.model import Model, Shape
else:
    torch, nn, flop_counter = map(lazy, ("torch", "torch.nn", "torch.utils.flop_counter"))

SAMPLES = 2  # batch normalization cannot train on one
LSTM_OUTPUTS = 10  # per unit and step: state, output, and four gates before and after activation


class Counts(NamedTuple):
    """The size of a network and of one sample's forward pass through it."""

    weights: int
    """Trainable parameters: what a client sends. Running statistics are not among them."""

    outputs: int
    """Numbers that the layers put out for one sample, and that training keeps for the backward
    pass. The network's own output is left out."""

    multiply_adds: int
    """Multiplications, each with its addition, of convolutions and matrix products."""

    layers: int
    """Layers that are not made of others."""

    can_be_batched: bool = True
    """Whether the networks of several clients can be trained as one."""


@functools.cache
def counts_of(model: Model, shape: Shape, classes: int) -> Counts:
    """Count a model's weights, outputs and multiply-adds, or load them from the user's cache."""
    if not type(model).__module__.startswith("cohort.models."):
        return count(model, shape, classes)  # the key below does not cover this model's code
    code = [code_hash("models/**/*"), version("torch"), version("torchvision")]
    key = [model.name, model.science, shape, classes, *code]
    return Counts(*cached("models", key, lambda: count(model, shape, classes)))


def count(model: Model, shape: Shape, classes: int) -> Counts:
    """Build the model for samples of this shape and count a forward pass of one sample."""
    with torch.device("meta"):
        network = model.build(shape, classes)
        dtype = torch.long if model.kinds == ("text",) else None
        samples = torch.zeros(SAMPLES, *shape, dtype=dtype)
    outputs = _ActivationCounter(network)
    with flop_counter.FlopCounterMode(display=False) as operations:
        scores = network(samples)
    return Counts(
        sum(weight.numel() for weight in network.parameters() if weight.requires_grad),
        (outputs.total - scores.numel()) // SAMPLES,
        operations.get_total_flops() // (2 * SAMPLES),
        sum(next(layer.children(), None) is None for layer in network.modules()),
        not unbatchable_layer(network),
    )


def unbatchable_layer(network: nn.Module) -> str:
    """The kind of a layer that cannot be trained for several clients as one; empty without any."""
    for layer in network.modules():
        is_random_or_recurrent = isinstance(layer, nn.modules.dropout._DropoutNd | nn.RNNBase)
        # padding a batch would change the statistics of batch normalization
        if is_random_or_recurrent or list(layer.buffers(recurse=False)):
            return type(layer).__name__
    return ""


class _ActivationCounter:
    """Counts the activations that a network's layers return. A layer made of others counts only
    where it returns a tensor that none of them did, as squeeze-and-excitation does."""

    def __init__(self, network: nn.Module):
        self.total = 0
        self._seen: list[Tensor] = []  # alive, so that no later tensor can pass for one of them
        for layer in network.modules():
            layer.register_forward_hook(self._add)

    def _add(self, layer: nn.Module, _: Any, result: Any) -> None:
        output = result[0] if isinstance(layer, nn.LSTM) else result
        is_composite = next(layer.children(), None) is not None
        if isinstance(layer, nn.Flatten | nn.Identity) or (
            is_composite and any(output is seen for seen in self._seen)
        ):
            return
        self._seen.append(output)
        copies = LSTM_OUTPUTS * layer.num_layers if isinstance(layer, nn.LSTM) else 1
        self.total += output.numel() * copies
