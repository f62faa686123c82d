"""Layers that compute all clients at once, by the kernels, where a network is called under
`torch.vmap` over its weights and inputs."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from cohort.kernels import convolution, depthwise, normalization
from cohort.kernels.convolution import Shape


class _Convolution(Function):
    """A convolution of images (client, sample, row, column, channel)."""

    @staticmethod
    def forward(
        ctx: Any, images: Tensor, weights: Tensor, bias: Tensor | None, shape: Shape,
        precision: str, relu: bool, pool: bool,
    ) -> Tensor:  # fmt: skip
        ctx.shape, ctx.precision, ctx.relu, ctx.pool = shape, precision, relu, pool
        given = images, weights, bias, shape, precision, relu, pool
        results, winners = convolution.convolve(*given)
        ctx.save_for_backward(images, weights, results if relu or pool else None, winners)
        return results

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        images, weights, results, winners = ctx.saved_tensors
        gradients, before = gradients.contiguous(), None
        if ctx.relu or ctx.pool:
            given = gradients, results, winners, ctx.shape, ctx.pool
            gradients = convolution.activation_gradient(*given)
        if ctx.needs_input_grad[0]:
            before = convolution.input_gradient(gradients, weights, ctx.shape, ctx.precision)
        own = convolution.weight_gradients(images, gradients, ctx.shape, ctx.precision)
        return before, own[0], own[1] if ctx.needs_input_grad[2] else None, None, None, None, None


class _Depthwise(Function):
    """A depthwise convolution of images (client, sample, row, column, channel)."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weights: Tensor, shape: Shape) -> Tensor:
        ctx.shape = shape
        ctx.save_for_backward(images, weights)
        return depthwise.filter_channels(images, weights, shape, backward=False)

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        images, weights = ctx.saved_tensors
        gradients = gradients.contiguous()
        before = depthwise.filter_channels(gradients, weights, ctx.shape, backward=True)
        return before, depthwise.weight_gradient(images, gradients, ctx.shape), None


class _Normalization(Function):
    """Batch normalization of images (client, sample, row, column, channel); moves the running
    statistics of clients with at least two samples, and normalizes the others' by these."""

    @staticmethod
    def forward(
        ctx: Any, images: Tensor, weights: Tensor, bias: Tensor, running: tuple[Tensor, ...],
        counted: Tensor, momentum: float, epsilon: float, relu: bool,
    ) -> Tensor:  # fmt: skip
        old_means, old_variances, batches = running
        means, variances, number = normalization.statistics(images, counted)
        has_statistics = counted.sum(dim=1, keepdim=True) > 1
        unbiased = variances * (number / (number - 1).clamp(min=1))
        for old, new in ((old_means, means), (old_variances, unbiased)):
            old.lerp_(torch.where(has_statistics, new, old), momentum)
        batches += has_statistics[:, 0]
        means = torch.where(has_statistics, means, old_means)
        variances = torch.where(has_statistics, variances, old_variances)
        factors = (variances + epsilon).rsqrt()
        results = normalization.normalize(images, means, factors, weights, bias, relu)
        number = number * has_statistics
        ctx.save_for_backward(images, results, means, factors, weights, counted, number)
        ctx.relu = relu
        return results

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        images, results, means, factors, weights, counted, number = ctx.saved_tensors
        tensors = images, given.contiguous(), results, means, factors, weights, counted, number
        return *normalization.gradients(*tensors, ctx.relu), None, None, None, None, None
