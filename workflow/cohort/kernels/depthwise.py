"""Depthwise convolutions, which filter each channel by itself, and their gradients."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from cohort.kernels.convolution import Shape, sum_splits


@triton.jit
def _filter(
    images, weights, results, weight_row,
    B: tl.constexpr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, R: tl.constexpr,
    S: tl.constexpr, P: tl.constexpr, Q: tl.constexpr, STRIDE: tl.constexpr,
    PADDING: tl.constexpr, BACKWARD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Images (B, H, W, C) to results (B, P, Q, C), by weights (C, R, S). BACKWARD: from the gradient
    of the outputs to that of the inputs."""
    client = tl.program_id(2).to(tl.int64)
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    channel = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    exists = (pixel < B * P * Q)[:, None] & (channel < C)[None, :]
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for tap in range(0, R * S):
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
        inside = (inside & (down < H) & (right < W))[:, None] & exists
        source = ((pixel // (P * Q) * H + down) * W + right)[:, None] * C + channel[None, :]
        values = tl.load(images + client * (B * H * W * C) + source, mask=inside, other=0.0)
        at = weights + client * weight_row + channel * (R * S) + tap
        sums += values * tl.load(at, mask=channel < C, other=0.0)[None, :]
    at = client * (B * P * Q * C) + pixel[:, None] * C + channel[None, :]
    tl.store(results + at, sums, mask=exists)


@triton.jit
def _weight_gradient(
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
        down = pixel // Q % P * STRIDE - PADDING + tap // S
        right = pixel % Q * STRIDE - PADDING + tap % S
        inside = ((down >= 0) & (right >= 0) & (down < H) & (right < W))[:, None] & exists
        source = ((pixel // (P * Q) * H + down) * W + right)[:, None] * C + channel[None, :]
        values = tl.load(images + client * (B * H * W * C) + source, mask=inside, other=0.0)
        at = client * (B * P * Q * C) + pixel[:, None] * C + channel[None, :]
        sums += tl.sum(values * tl.load(gradients + at, mask=exists, other=0.0), axis=0)
    at = (split * clients + client) * (C * R * S) + channel * (R * S) + tap
    tl.store(parts + at, sums, mask=channel < C)


def _blocks(shape: Shape) -> dict[str, int]:
    return {"BLOCK_M": 32, "BLOCK_N": min(64, triton.next_power_of_2(shape.channels))}


def filter_channels(images: Tensor, weights: Tensor, shape: Shape, backward: bool) -> Tensor:
    """Outputs (client, sample, row, column, channel) of a depthwise convolution with weights
    (client, channel, row, column); `backward`: the gradient of its inputs from that of these."""
    inner, outer = (shape.height, shape.width), (shape.out_height, shape.out_width)
    inner, outer = (outer, inner) if backward else (inner, outer)
    results = images.new_empty(len(images), shape.batch, *outer, shape.channels)
    blocks, pixels = _blocks(shape), shape.batch * outer[0] * outer[1]
    grid = triton.cdiv(pixels, blocks["BLOCK_M"]), triton.cdiv(shape.channels, blocks["BLOCK_N"])
    _filter[*grid, len(images)](
        images, weights, results, weights.stride(0), shape.batch, *inner, shape.channels,
        shape.rows, shape.columns, *outer, shape.stride, shape.padding, backward, **blocks,
    )  # fmt: skip
    return results


def weight_gradient(images: Tensor, gradients: Tensor, shape: Shape) -> Tensor:
    """Gradients of weights (client, channel, row, column)."""
    blocks, clients = _blocks(shape), len(images)
    splits = max(1, min(16, shape.out_pixels // 512))
    share = triton.cdiv(triton.cdiv(shape.out_pixels, splits), blocks["BLOCK_M"]) * blocks["BLOCK_M"]
    splits = triton.cdiv(shape.out_pixels, share)
    taps = shape.rows, shape.columns
    parts = torch.empty(splits, clients, shape.channels, *taps, device=images.device)
    programs = triton.cdiv(shape.channels, blocks["BLOCK_N"]) * taps[0] * taps[1]
    _weight_gradient[programs, clients, splits](
        images, gradients, parts, clients, shape.batch, shape.height, shape.width, shape.channels,
        *taps, shape.out_height, shape.out_width, shape.stride, shape.padding, share, **blocks,
    )  # fmt: skip
    return sum_splits(parts)
