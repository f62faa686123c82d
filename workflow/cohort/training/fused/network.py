"""Networks as lists of fused layers."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from cohort.training.fused.layers import (
    FUSED,
    ConvPool,
    FusedConv2d,
    FusedConvPool2x2,
    FusedLayer,
    FusedMaxPool2d,
    FusedReLU,
)


def is_fusible(model: nn.Module) -> bool:
    """Whether a network is a sequence of layers in FUSED, with biases where they have weights, and
    with numeric zero padding if any."""
    return isinstance(model, nn.Sequential) and all(map(_is_fusible, model))


def _is_fusible(layer: nn.Module) -> bool:
    is_usual = (
        getattr(layer, "bias", True) is not None
        and getattr(layer, "padding_mode", "zeros") == "zeros"
    )
    return type(layer) in FUSED and is_usual and not isinstance(getattr(layer, "padding", 0), str)


def fuse(layers: Iterable[nn.Module]) -> list[FusedLayer]:
    """Replace a sequence of layers by fused layers; a convolution and the max pooling behind it
    become one. A ReLU between them moves behind the pooling, which yields the same maxima."""
    fused: list[FusedLayer] = []
    for layer in layers:
        new = FUSED[type(layer)](layer)
        swapped = isinstance(new, FusedMaxPool2d) and fused and isinstance(fused[-1], FusedReLU)
        relu = [fused.pop()] if swapped else []
        before = fused[-1] if fused else None
        if isinstance(new, FusedMaxPool2d) and isinstance(before, FusedConv2d):
            is_quad = FusedConvPool2x2.fits(before, new)
            fused[-1] = FusedConvPool2x2(before) if is_quad else ConvPool(before, new)
        else:
            fused.append(new)
        fused += relu
    return fused


def outputs_of(model: nn.Module, inputs: Tensor) -> Tensor:
    """A network's outputs in evaluation: by fused layers if it can be fused and is on a CPU, where
    they are faster. Each layer is freed after its forward pass, with the tensors it stores."""
    if inputs.device.type != "cpu" or torch.is_autocast_enabled("cpu") or not is_fusible(model):
        return model(inputs)
    layers = fuse(model.children())[::-1]
    while layers:
        inputs = layers.pop().forward(inputs)
    return inputs
