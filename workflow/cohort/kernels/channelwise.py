"""Layers that compute each channel by itself: batch normalization by the statistics of a client's
own batch, and depthwise convolutions."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from cohort.kernels.convolution import Shape, sum_splits

BLOCK_M, BLOCK_N = 32, 32  # pixels and channels of a program
MAX_SPLITS = 32  # of the pixels of a client's batch, for sums over them


@triton.jit
def _sums(
    images, gradients, counted, centers, parts, clients,
    B: tl.constexpr, PIXELS: tl.constexpr, C: tl.constexpr, SHARE: tl.constexpr,
    BACKWARD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Sums (split, client, 2, C) of the counted samples' distances to `centers` (client, C) and of
    their squares; BACKWARD: of all samples' gradients, and of gradients times distances."""
    client = tl.program_id(1).to(tl.int64)
    split = tl.program_id(2)
    channel = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    is_channel = channel < C
    center = tl.load(centers + client * C + channel, mask=is_channel, other=0.0)[None, :]
    first = tl.zeros((BLOCK_N,), dtype=tl.float32)
    second = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for begin in range(0, SHARE, BLOCK_M):
        pixel = split * SHARE + begin + tl.arange(0, BLOCK_M)
        is_pixel = pixel < B * PIXELS
        if not BACKWARD:
            sample = client * B + pixel // PIXELS
            is_pixel = tl.load(counted + sample, mask=is_pixel, other=0) > 0
        exists = is_pixel[:, None] & is_channel[None, :]
        at = client * (B * PIXELS * C) + pixel[:, None] * C + channel[None, :]
        distance = tl.where(exists, tl.load(images + at, mask=exists, other=0.0) - center, 0.0)
        term = tl.load(gradients + at, mask=exists, other=0.0) if BACKWARD else distance
        first += tl.sum(term, axis=0)
        second += tl.sum(term * distance, axis=0)
    at = (split * clients + client) * (2 * C) + channel
    tl.store(parts + at, first, mask=is_channel)
    tl.store(parts + at + C, second, mask=is_channel)


@triton.jit
def _scale(
    images, gradients, counted, centers, slopes, offsets, factors, results,
    B: tl.constexpr, PIXELS: tl.constexpr, C: tl.constexpr, BACKWARD: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Normalize images by channel: (image - center) * slope + offset. BACKWARD: that only in the
    counted samples, and in all samples plus the gradient times a factor."""
    client = tl.program_id(2).to(tl.int64)
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    channel = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    is_pixel, is_channel = pixel < B * PIXELS, channel < C
    exists = is_pixel[:, None] & is_channel[None, :]
    row = client * C + channel
    center = tl.load(centers + row, mask=is_channel, other=0.0)[None, :]
    slope = tl.load(slopes + row, mask=is_channel, other=0.0)[None, :]
    offset = tl.load(offsets + row, mask=is_channel, other=0.0)[None, :]
    at = client * (B * PIXELS * C) + pixel[:, None] * C + channel[None, :]
    result = (tl.load(images + at, mask=exists, other=0.0) - center) * slope + offset
    if BACKWARD:
        sample = client * B + pixel // PIXELS
        is_counted = tl.load(counted + sample, mask=is_pixel, other=0) > 0
        factor = tl.load(factors + row, mask=is_channel, other=0.0)[None, :]
        gradient = tl.load(gradients + at, mask=exists, other=0.0)
        result = tl.where(is_counted[:, None], result, 0.0) + gradient * factor
    tl.store(results + at, result, mask=exists)


def moments(images: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
    """Means and variances (client, channel) of the counted samples (client, sample) of images
    (client, sample, row, column, channel)."""
    centers = images[:, 0, 0, 0].contiguous()  # a large mean would cost digits
    sums = _sum_channels(images, images, counted, centers, backward=False)
    number = counted.sum(dim=1)[:, None, None] * images[0, 0, ..., 0].numel()
    first, second = (sums / number.clamp(min=1)).unbind(dim=1)
    return centers + first, (second - first.square()).clamp(min=0)


def scale(images: Tensor, centers: Tensor, slopes: Tensor, offsets: Tensor) -> Tensor:
    """Normalize images by channel: (image - center) * slope + offset, with a center, slope and
    offset for each (client, channel)."""
    return _scale_channels(images, images, images, centers, slopes, offsets, slopes, backward=False)


def normalization_gradients(
    images: Tensor, counted: Tensor, means: Tensor, factors: Tensor, weights: Tensor,
    has_moments: Tensor, gradients: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of images, weights and bias from those of (images - mean) * factor * weight + bias,
    by client and channel. Mean and factor are those of the counted samples where `has_moments`
    (client, 1), and else constants."""
    sums = _sum_channels(images, gradients, counted, means, backward=True)
    of_bias, of_weights = sums[:, 0].contiguous(), sums[:, 1] * factors
    number = counted.sum(dim=1, keepdim=True) * images[0, 0, ..., 0].numel()
    slopes = factors * weights
    shared = torch.where(has_moments, slopes / number.clamp(min=1), 0)
    common = means, -shared * factors * of_weights, -shared * of_bias, slopes
    of_images = _scale_channels(images, gradients, counted, *common, backward=True)
    return of_images, of_weights, of_bias


def _sum_channels(
    images: Tensor, gradients: Tensor, counted: Tensor, centers: Tensor, backward: bool
) -> Tensor:
    clients, batch, height, width, channels = images.shape
    share, splits = _share(batch * height * width, MAX_SPLITS)
    parts = images.new_empty(splits, clients, 2, channels)
    _sums[triton.cdiv(channels, BLOCK_N), clients, splits](
        images, gradients, counted, centers, parts, clients, batch, height * width, channels,
        share, backward, BLOCK_M, BLOCK_N,
    )  # fmt: skip
    return sum_splits(parts)


def _scale_channels(
    images: Tensor, gradients: Tensor, counted: Tensor, *rows: Tensor, backward: bool
) -> Tensor:
    clients, batch, height, width, channels = images.shape
    results, pixels = torch.empty_like(images), height * width
    blocks = triton.cdiv(batch * pixels, BLOCK_M), triton.cdiv(channels, BLOCK_N)
    sizes = batch, pixels, channels, backward, BLOCK_M, BLOCK_N
    _scale[*blocks, clients](images, gradients, counted, *rows, results, *sizes)
    return results


def _share(pixels: int, max_splits: int) -> tuple[int, int]:
    """How many pixels each split sums over, and how many splits there are, at most `max_splits`."""
    splits = max(1, min(max_splits, pixels // (8 * BLOCK_M)))
    share = triton.cdiv(triton.cdiv(pixels, splits), BLOCK_M) * BLOCK_M
    return share, triton.cdiv(pixels, share)


@triton.jit
def _inside(
    pixel, tap, P: tl.constexpr, Q: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, BACKWARD: tl.constexpr,
):  # fmt: skip
    """Which pixels of (B, P, Q) have a neighbor in (B, H, W) at a tap of the filter, and where."""
    if BACKWARD:
        down = pixel // Q % P + PADDING - tap // S
        right = pixel % Q + PADDING - tap % S
        inside = (down >= 0) & (right >= 0) & (down % STRIDE == 0) & (right % STRIDE == 0)
        down = down // STRIDE
        right = right // STRIDE
    else:
        down = pixel // Q % P * STRIDE - PADDING + tap // S
        right = pixel % Q * STRIDE - PADDING + tap % S
        inside = (down >= 0) & (right >= 0)
    return inside & (down < H) & (right < W), (pixel // (P * Q) * H + down) * W + right


@triton.jit
def _filter(
    images, weights, results, weight_row,
    B: tl.constexpr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, R: tl.constexpr,
    S: tl.constexpr, P: tl.constexpr, Q: tl.constexpr, STRIDE: tl.constexpr,
    PADDING: tl.constexpr, BACKWARD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Images (B, H, W, C) to results (B, P, Q, C), by weights (C, R, S). BACKWARD: from the
    gradient of a convolution's outputs to that of its inputs."""
    client = tl.program_id(2).to(tl.int64)
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    channel = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    is_channel = channel < C
    exists = (pixel < B * P * Q)[:, None] & is_channel[None, :]
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for tap in range(0, R * S):
        inside, source = _inside(pixel, tap, P, Q, H, W, S, STRIDE, PADDING, BACKWARD)
        at = client * (B * H * W * C) + source[:, None] * C + channel[None, :]
        values = tl.load(images + at, mask=inside[:, None] & exists, other=0.0)
        at = client * weight_row + channel * (R * S) + tap
        sums += values * tl.load(weights + at, mask=is_channel, other=0.0)[None, :]
    at = client * (B * P * Q * C) + pixel[:, None] * C + channel[None, :]
    tl.store(results + at, sums, mask=exists)


@triton.jit
def _filter_gradient(
    images, gradients, parts, clients,
    B: tl.constexpr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, R: tl.constexpr,
    S: tl.constexpr, P: tl.constexpr, Q: tl.constexpr, STRIDE: tl.constexpr,
    PADDING: tl.constexpr, SHARE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Gradients of weights (split, client, C, R, S); a program has one tap of some channels."""
    client = tl.program_id(1).to(tl.int64)
    split = tl.program_id(2)
    tap = tl.program_id(0) % (R * S)
    channel = tl.program_id(0) // (R * S) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for first in range(0, SHARE, BLOCK_M):
        pixel = split * SHARE + first + tl.arange(0, BLOCK_M)
        exists = (pixel < B * P * Q)[:, None] & (channel < C)[None, :]
        inside, source = _inside(pixel, tap, P, Q, H, W, S, STRIDE, PADDING, False)
        at = client * (B * H * W * C) + source[:, None] * C + channel[None, :]
        values = tl.load(images + at, mask=inside[:, None] & exists, other=0.0)
        at = client * (B * P * Q * C) + pixel[:, None] * C + channel[None, :]
        sums += tl.sum(values * tl.load(gradients + at, mask=exists, other=0.0), axis=0)
    at = (split * clients + client) * (C * R * S) + channel * (R * S) + tap
    tl.store(parts + at, sums, mask=channel < C)


def filter_channels(images: Tensor, weights: Tensor, shape: Shape, backward: bool) -> Tensor:
    """Outputs (client, sample, row, column, channel) of a depthwise convolution with weights
    (client, channel, row, column); `backward`: the gradient of its inputs from that of these."""
    sizes = (shape.height, shape.width), (shape.out_height, shape.out_width)
    before, after = reversed(sizes) if backward else sizes
    results = images.new_empty(len(images), shape.batch, *after, shape.channels)
    pixels = shape.batch * after[0] * after[1]
    blocks = triton.cdiv(pixels, BLOCK_M), triton.cdiv(shape.channels, BLOCK_N)
    _filter[*blocks, len(images)](
        images, weights, results, weights.stride(0), shape.batch, *before, shape.channels,
        shape.rows, shape.columns, *after, shape.stride, shape.padding, backward, BLOCK_M, BLOCK_N,
    )  # fmt: skip
    return results


def filter_gradient(images: Tensor, gradients: Tensor, shape: Shape) -> Tensor:
    """Gradients of weights (client, channel, row, column) from those of the outputs."""
    taps, clients = (shape.rows, shape.columns), len(images)
    share, splits = _share(shape.out_pixels, MAX_SPLITS // 2)
    parts = images.new_empty(splits, clients, shape.channels, *taps)
    programs = triton.cdiv(shape.channels, BLOCK_N) * taps[0] * taps[1]
    _filter_gradient[programs, clients, splits](
        images, gradients, parts, clients, shape.batch, shape.height, shape.width, shape.channels,
        *taps, shape.out_height, shape.out_width, shape.stride, shape.padding, share,
        BLOCK_M, BLOCK_N,
    )  # fmt: skip
    return sum_splits(parts)
