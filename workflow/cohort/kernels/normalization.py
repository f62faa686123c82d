"""Batch normalization of each client by the statistics of its own batch, with a ReLU in the same
kernel. Samples that only fill a batch up are not counted."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from cohort.kernels.convolution import sum_splits

BLOCK_M, BLOCK_N = 32, 32  # pixels and channels of a program
MOST_SPLITS = 32  # of a client's pixels


@triton.jit
def _moments(
    images, counted, sums, clients, SHARE,
    B: tl.constexpr, PIXELS: tl.constexpr, C: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Sums (split, client, 2, C) of the counted samples' numbers and of their squares, less the
    client's first pixel, so that rounding costs little."""
    client = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    is_channel = channel < C
    own = images + client * (B * PIXELS * C)
    shift = tl.load(own + channel, mask=is_channel, other=0.0)
    first = tl.zeros((BLOCK_N,), dtype=tl.float32)
    second = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for begin in range(0, SHARE, BLOCK_M):
        pixel = tl.program_id(2) * SHARE + begin + tl.arange(0, BLOCK_M)
        is_pixel = pixel < B * PIXELS
        is_counted = tl.load(counted + client * B + pixel // PIXELS, mask=is_pixel, other=0) > 0
        exists = is_counted[:, None] & is_channel[None, :]
        numbers = tl.load(own + pixel[:, None] * C + channel[None, :], mask=exists, other=0.0)
        differences = tl.where(exists, numbers - shift[None, :], 0.0)
        first += tl.sum(differences, axis=0)
        second += tl.sum(differences * differences, axis=0)
    at = (tl.program_id(2) * clients + client) * (2 * C) + channel
    tl.store(sums + at, first, mask=is_channel)
    tl.store(sums + at + C, second, mask=is_channel)


@triton.jit
def _normalize(
    images, means, factors, weights, bias, results,
    N: tl.constexpr, C: tl.constexpr, RELU: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Normalize N pixels of each client."""
    client = tl.program_id(2).to(tl.int64)
    channel = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    is_channel = channel < C
    exists = (pixel < N)[:, None] & is_channel[None, :]
    at = client * C + channel
    mean = tl.load(means + at, mask=is_channel, other=0.0)[None, :]
    factor = tl.load(factors + at, mask=is_channel, other=0.0)[None, :]
    weight = tl.load(weights + at, mask=is_channel, other=0.0)[None, :]
    offset = tl.load(bias + at, mask=is_channel, other=0.0)[None, :]
    place = client * (N * C) + pixel[:, None] * C + channel[None, :]
    normal = (tl.load(images + place, mask=exists, other=0.0) - mean) * factor
    result = normal * weight + offset
    if RELU:
        result = tl.maximum(result, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(results + place, result, mask=exists)


@triton.jit
def _gradient_sums(
    images, gradients, results, means, factors, sums, clients, SHARE,
    N: tl.constexpr, C: tl.constexpr, RELU: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Sums (split, client, 2, C): gradients of the bias and of the weights."""
    client = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    is_channel = channel < C
    mean = tl.load(means + client * C + channel, mask=is_channel, other=0.0)[None, :]
    factor = tl.load(factors + client * C + channel, mask=is_channel, other=0.0)[None, :]
    of_bias = tl.zeros((BLOCK_N,), dtype=tl.float32)
    of_weights = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for begin in range(0, SHARE, BLOCK_M):
        pixel = tl.program_id(2) * SHARE + begin + tl.arange(0, BLOCK_M)
        exists = (pixel < N)[:, None] & is_channel[None, :]
        place = client * (N * C) + pixel[:, None] * C + channel[None, :]
        gradient = tl.load(gradients + place, mask=exists, other=0.0)
        if RELU:
            passes = tl.load(results + place, mask=exists, other=0.0) > 0
            gradient = tl.where(passes, gradient, 0.0)
        normal = (tl.load(images + place, mask=exists, other=0.0) - mean) * factor
        of_bias += tl.sum(gradient, axis=0)
        of_weights += tl.sum(gradient * normal, axis=0)
    at = (tl.program_id(2) * clients + client) * (2 * C) + channel
    tl.store(sums + at, of_bias, mask=is_channel)
    tl.store(sums + at + C, of_weights, mask=is_channel)


@triton.jit
def _input_gradient(
    images, gradients, results, means, factors, weights, shares, counted, before,
    B: tl.constexpr, PIXELS: tl.constexpr, C: tl.constexpr, RELU: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The gradient of the images; `shares` (client, 2, C) are what each counted number gets of the
    gradients of bias and weights."""
    client = tl.program_id(2).to(tl.int64)
    channel = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    is_channel = channel < C
    is_pixel = pixel < B * PIXELS
    exists = is_pixel[:, None] & is_channel[None, :]
    at = client * C + channel
    mean = tl.load(means + at, mask=is_channel, other=0.0)[None, :]
    factor = tl.load(factors + at, mask=is_channel, other=0.0)[None, :]
    weight = tl.load(weights + at, mask=is_channel, other=0.0)[None, :]
    of_bias = tl.load(shares + client * C + at, mask=is_channel, other=0.0)[None, :]
    of_weights = tl.load(shares + client * C + at + C, mask=is_channel, other=0.0)[None, :]
    is_counted = tl.load(counted + client * B + pixel // PIXELS, mask=is_pixel, other=0)[:, None] > 0
    place = client * (B * PIXELS * C) + pixel[:, None] * C + channel[None, :]
    gradient = tl.load(gradients + place, mask=exists, other=0.0)
    if RELU:
        passes = tl.load(results + place, mask=exists, other=0.0) > 0
        gradient = tl.where(passes, gradient, 0.0)
    normal = (tl.load(images + place, mask=exists, other=0.0) - mean) * factor
    common = tl.where(is_counted, of_bias + normal * of_weights, 0.0)
    tl.store(before + place, (gradient - common) * factor * weight, mask=exists)


def statistics(images: Tensor, counted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Means and variances (client, channel) of the counted samples (client, sample), and the number
    (client, 1) that they are taken of. `images` are (client, sample, row, column, channel)."""
    clients, batch, *sides, channels = images.shape
    pixels = sides[0] * sides[1]
    splits, share = _splits(batch * pixels)
    parts = images.new_empty(splits, clients, 2, channels)
    blocks = triton.cdiv(channels, BLOCK_N), clients, splits
    shape = batch, pixels, channels, BLOCK_M, BLOCK_N
    _moments[blocks](images, counted, parts, clients, share, *shape)
    number = counted.sum(dim=1, keepdim=True).to(images.dtype) * pixels
    first, second = (sum_splits(parts) / number.clamp(min=1)[..., None]).unbind(dim=1)
    return first + images[:, 0, 0, 0], (second - first.square()).clamp(min=0), number


def normalize(
    images: Tensor, means: Tensor, factors: Tensor, weights: Tensor, bias: Tensor, relu: bool
) -> Tensor:
    """(images - mean) * factor * weight + bias by client and channel, then ReLU if asked for."""
    results = torch.empty_like(images)
    given = images, means, factors, weights, bias, results
    pixels, channels = images[0, ..., 0].numel(), images.shape[-1]
    _normalize[_blocks(images)](*given, pixels, channels, relu, BLOCK_M, BLOCK_N)
    return results


def gradients(
    images: Tensor, given: Tensor, results: Tensor, means: Tensor, factors: Tensor,
    weights: Tensor, counted: Tensor, number: Tensor, relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of images, weights and bias from those of `normalize`'s results. `number` is 0 for
    clients whose means and factors are not those of their own images."""
    clients, batch, *sides, channels = images.shape
    pixels = sides[0] * sides[1]
    splits, share = _splits(batch * pixels)
    parts = images.new_empty(splits, clients, 2, channels)
    blocks = triton.cdiv(channels, BLOCK_N), clients, splits
    shape = batch * pixels, channels, relu, BLOCK_M, BLOCK_N
    _gradient_sums[blocks](images, given, results, means, factors, parts, clients, share, *shape)
    sums = sum_splits(parts)
    shares = torch.where(number > 0, 1 / number, 0)[..., None] * sums
    before = torch.empty_like(images)
    shape = batch, pixels, channels, relu, BLOCK_M, BLOCK_N
    _input_gradient[_blocks(images)](
        images, given, results, means, factors, weights, shares, counted, before, *shape
    )
    return before, sums[:, 1], sums[:, 0]


def _splits(pixels: int) -> tuple[int, int]:
    """How many splits a client's pixels have, and how many pixels are in each."""
    splits = max(1, min(MOST_SPLITS, pixels // (8 * BLOCK_M)))
    share = triton.cdiv(triton.cdiv(pixels, splits), BLOCK_M) * BLOCK_M
    return triton.cdiv(pixels, share), share


def _blocks(images: Tensor) -> tuple[int, int, int]:
    """The grid of a kernel that takes every number of all images once."""
    clients, batch, *sides, channels = images.shape
    pixels = batch * sides[0] * sides[1]
    return triton.cdiv(pixels, BLOCK_M), triton.cdiv(channels, BLOCK_N), clients
