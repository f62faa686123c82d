"""A network as a chain of links."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from cohort.training.fused.layers import (
    LINKS,
    Convolution,
    Link,
    Pool,
    Pooled,
    Quartered,
    Rectifier,
)


def is_chain(model: nn.Module) -> bool:
    """Whether it is layers of known kinds, one after another, with biases if they have weights, that pad with zeros, if at all."""
    return isinstance(model, nn.Sequential) and all(_is_linked(layer) for layer in model)


def _is_linked(layer: nn.Module) -> bool:
    as_usual = (
        getattr(layer, "bias", True) is not None
        and getattr(layer, "padding_mode", "zeros") == "zeros"
    )
    return type(layer) in LINKS and as_usual and not isinstance(getattr(layer, "padding", 0), str)


def chain_of(layers: Iterable[nn.Module]) -> list[Link]:
    """A link for each layer, but one for a convolution and the pooling of its outputs, and what rectifies them comes after: it leaves
    the greatest the greatest."""
    chain: list[Link] = []
    for layer in layers:
        link = LINKS[type(layer)](layer)
        after = (
            [chain.pop()]
            if isinstance(link, Pool) and chain and isinstance(chain[-1], Rectifier)
            else []
        )
        if isinstance(link, Pool) and chain and isinstance(convolution := chain[-1], Convolution):
            chain[-1] = (
                Quartered(convolution)
                if Quartered.fits(convolution, link)
                else Pooled(convolution, link)
            )
        else:
            chain.append(link)
        chain += after
    return chain


def outputs_of(model: nn.Module, inputs: Tensor) -> Tensor:
    """What it answers in evaluation: on a CPU along its chain, if it is one, which is faster. A link is let go with what it remembers."""
    if inputs.device.type != "cpu" or torch.is_autocast_enabled("cpu") or not is_chain(model):
        return model(inputs)
    chain = chain_of(model.children())[::-1]
    while chain:
        inputs = chain.pop().forward(inputs)
    return inputs
