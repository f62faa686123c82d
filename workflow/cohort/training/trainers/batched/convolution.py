"""Convolutions as matrix products, which are fast with weights of their own for each client.

PyTorch turns the convolution of several clients, each with its own weights, into a grouped one, of
which cuDNN computes one group after another. Matrix products run for all clients at once.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad


class UnfoldedConv2d(nn.Conv2d):
    """A convolution with stride 1 by one product of its kernels with all patches of all images."""

    def forward(self, images: Tensor) -> Tensor:
        assert not isinstance(self.padding, str)
        vertical, horizontal = self.padding
        borders = horizontal, horizontal, vertical, vertical
        outputs = unfolded_convolution(self.weight, pad(images, borders))
        return outputs if self.bias is None else outputs + self.bias.view(-1, 1, 1)


def unfolded_convolution(weight: Tensor, images: Tensor) -> Tensor:
    """Convolve padded images with stride 1."""
    outputs: Tensor = _Convolution.apply(weight, images)
    return outputs


class _Convolution(torch.autograd.Function):
    """A convolution of padded images whose gradients are such products as well."""

    generate_vmap_rule = True

    @staticmethod
    def forward(weight: Tensor, images: Tensor) -> Tensor:
        return _convolved(weight, images)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor | None]:
        weight, images = ctx.saved_tensors
        of_each = upstream.transpose(0, 1).flatten(1)
        of_weight = (of_each @ _patches(images, weight.shape).T).view_as(weight)
        if not ctx.needs_input_grad[1]:
            return of_weight, None
        height, width = weight.shape[2] - 1, weight.shape[3] - 1
        turned = weight.flip(2, 3).transpose(0, 1)
        return of_weight, _convolved(turned, pad(upstream, (width, width, height, height)))


def _convolved(weight: Tensor, images: Tensor) -> Tensor:
    count, _, height, width = images.shape
    place = count, height - weight.shape[2] + 1, width - weight.shape[3] + 1
    products = weight.flatten(1) @ _patches(images, weight.shape)
    return products.unflatten(1, place).transpose(0, 1)


def _patches(images: Tensor, kernel: torch.Size) -> Tensor:
    """All patches of images that a kernel meets, one column each."""
    views = images.unfold(2, kernel[2], 1).unfold(3, kernel[3], 1)
    return views.permute(1, 4, 5, 0, 2, 3).flatten(0, 2).flatten(1)


def unfold_convolutions(model: nn.Module) -> nn.Module:
    """A copy of a network that convolves by matrix products where it can."""
    network = copy.deepcopy(model)
    for layer in network.modules():
        if type(layer) is nn.Conv2d and _can_be_unfolded(layer):
            layer.__class__ = UnfoldedConv2d
    return network


def _can_be_unfolded(layer: nn.Conv2d) -> bool:
    is_plain = layer.groups == 1 and layer.stride == layer.dilation == (1, 1)
    return is_plain and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
