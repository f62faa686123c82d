"""Convolutions and linear layers, which are convolutions of a single pixel: forward with bias, ReLU
and 2x2 max pooling in one kernel, and the gradients of inputs and weights."""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024  # numbers that a program of an elementwise kernel takes
TILES = 64  # programs per client wanted for a weight gradient: few tiles are split over pixels


@dataclass(frozen=True)
class Shape:
    """A convolution of one client: images (batch, height, width, channels), `outputs` filters of
    `rows` x `columns`, which put out images of `out_height` x `out_width`."""

    batch: int
    height: int
    width: int
    channels: int
    outputs: int
    rows: int
    columns: int
    stride: int
    padding: int

    @property
    def out_height(self) -> int:
        return (self.height + 2 * self.padding - self.rows) // self.stride + 1

    @property
    def out_width(self) -> int:
        return (self.width + 2 * self.padding - self.columns) // self.stride + 1

    @property
    def out_pixels(self) -> int:
        """Pixels of the outputs of a whole batch."""
        return self.batch * self.out_height * self.out_width

    @property
    def taps(self) -> int:
        """Weights of one filter."""
        return self.rows * self.columns * self.channels


def float32_precision(shape: Shape) -> str:
    """How Triton multiplies float32 numbers on tensor cores without losing digits: as six products
    of three bfloat16 parts, or, faster for narrow layers, as three products of TF32 parts."""
    is_wide = min(shape.channels, shape.outputs) >= 32 and shape.out_pixels >= 64
    return "bf16x6" if is_wide else "tf32x3"


@triton.jit
def _dot(left, right, sums, PRECISION: tl.constexpr):
    if PRECISION == "bfloat16":
        sums = tl.dot(left.to(tl.bfloat16), right.to(tl.bfloat16), sums)
    else:
        sums = tl.dot(left, right, sums, input_precision=PRECISION)
    return sums


@triton.jit
def _positions(pixel, P: tl.constexpr, Q: tl.constexpr, POOL: tl.constexpr):
    """Sample, row and column of pixels, which are in the order of pooling windows if POOL."""
    if POOL:
        window = pixel // 4
        column = window % (Q // 2) * 2 + pixel % 2
        row = window // (Q // 2) % (P // 2) * 2 + pixel % 4 // 2
        sample = window // ((P // 2) * (Q // 2))
    else:
        column = pixel % Q
        row = pixel // Q % P
        sample = pixel // (P * Q)
    return sample, row, column


@triton.jit
def _operands(
    images, weights, sample, row, column, output, first,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr, R: tl.constexpr,
    S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, BACKWARD: tl.constexpr,
    BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Blocks (pixel, tap) of the images and (tap, output) of the weights, from tap `first` on."""
    taps = first + tl.arange(0, BLOCK_K)
    channel = taps % C
    is_tap = taps < R * S * C
    if C % BLOCK_K == 0:  # all taps of the block are at one position in the filter
        position = first // C
        weight_position = position
    else:
        position = taps[None, :] // C
        weight_position = taps[:, None] // C
    if BACKWARD:
        down = row[:, None] + PADDING - position // S
        right = column[:, None] + PADDING - position % S
        inside = (down >= 0) & (right >= 0) & (down % STRIDE == 0) & (right % STRIDE == 0)
        down = down // STRIDE
        right = right // STRIDE
        at = channel[:, None] * (R * S * K) + weight_position * K + output[None, :]
    else:
        down = row[:, None] * STRIDE - PADDING + position // S
        right = column[:, None] * STRIDE - PADDING + position % S
        inside = (down >= 0) & (right >= 0)
        at = output[None, :] * (R * S * C) + taps[:, None]
    inside = inside & (down < H) & (right < W) & (row >= 0)[:, None] & is_tap[None, :]
    source = ((sample[:, None] * H + down) * W + right) * C + channel[None, :]
    left = tl.load(images + source, mask=inside, other=0.0)
    return left, tl.load(weights + at, mask=is_tap[:, None] & (output < K)[None, :], other=0.0)


@triton.jit
def _convolve(
    images, weights, bias, results, winners, weight_row,
    B: tl.constexpr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr,
    R: tl.constexpr, S: tl.constexpr, P: tl.constexpr, Q: tl.constexpr,
    STRIDE: tl.constexpr, PADDING: tl.constexpr, BACKWARD: tl.constexpr,
    BIAS: tl.constexpr, RELU: tl.constexpr, POOL: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Images (B, H, W, C) to results (B, P, Q, K), as a product of matrices whose left one is read
    from the images. BACKWARD: from the gradient of a convolution's outputs to that of its inputs.
    POOL: `winners` gets the pixel that is its window's maximum, or 4 if none is positive."""
    client = tl.program_id(2).to(tl.int64)
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    output = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    PIXELS: tl.constexpr = B * (P // 2) * (Q // 2) * 4 if POOL else B * P * Q
    sample, row, column = _positions(pixel, P, Q, POOL)
    row = tl.where(pixel < PIXELS, row, -1)  # nothing is read for pixels that don't exist
    images += client * (B * H * W * C)
    weights += client * weight_row
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first in range(0, R * S * C, BLOCK_K):
        left, factors = _operands(
            images, weights, sample, row, column, output, first,
            H, W, C, K, R, S, STRIDE, PADDING, BACKWARD, BLOCK_K,
        )  # fmt: skip
        sums = _dot(left, factors, sums, PRECISION)
    if BIAS:
        sums += tl.load(bias + client * K + output, mask=output < K, other=0.0)[None, :]
    if POOL:
        _store_pooled(sums, results, winners, client, output, PIXELS // 4, K, BLOCK_M, BLOCK_N)
    else:
        if RELU:
            sums = tl.maximum(sums, 0.0, propagate_nan=tl.PropagateNan.ALL)
        at = client * (PIXELS * K) + pixel[:, None] * K + output[None, :]
        tl.store(results + at, sums, mask=(pixel < PIXELS)[:, None] & (output < K)[None, :])


@triton.jit
def _store_pooled(
    sums, results, winners, client, output,
    WINDOWS: tl.constexpr, K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Store the maxima of pooling windows, at least 0, and where they are."""
    grouped = tl.reshape(sums, (BLOCK_M // 4, 4, BLOCK_N))
    best, winner = tl.max(grouped, axis=1, return_indices=True)
    window = tl.program_id(0) * (BLOCK_M // 4) + tl.arange(0, BLOCK_M // 4)
    at = client * (WINDOWS * K) + window[:, None] * K + output[None, :]
    exists = (window < WINDOWS)[:, None] & (output < K)[None, :]
    positive = tl.maximum(best, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(results + at, positive, mask=exists)
    tl.store(winners + at, tl.where(best > 0, winner, 4).to(tl.int8), mask=exists)


@triton.jit
def _weight_gradient(
    images, gradients, of_weights, of_bias, clients,
    B: tl.constexpr, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, K: tl.constexpr,
    R: tl.constexpr, S: tl.constexpr, P: tl.constexpr, Q: tl.constexpr,
    STRIDE: tl.constexpr, PADDING: tl.constexpr, SHARE: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Gradients of weights (split, client, K, R, S, C) and bias (split, client, K) from those of
    the outputs (B, P, Q, K). Each split sums over a SHARE of the pixels."""
    client = tl.program_id(1).to(tl.int64)
    split = tl.program_id(2)
    WEIGHTS: tl.constexpr = R * S * C
    BLOCKS: tl.constexpr = (WEIGHTS + BLOCK_N - 1) // BLOCK_N
    output = tl.program_id(0) // BLOCKS * BLOCK_M + tl.arange(0, BLOCK_M)
    weight = tl.program_id(0) % BLOCKS * BLOCK_N + tl.arange(0, BLOCK_N)
    is_output = output < K
    is_weight = weight < WEIGHTS
    tap = weight // C
    own_images = images + client * (B * H * W * C)
    own_gradients = gradients + client * (B * P * Q * K)
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    bias_sums = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for first in range(0, SHARE, BLOCK_K):
        pixel = split * SHARE + first + tl.arange(0, BLOCK_K)
        is_pixel = pixel < B * P * Q
        down = (pixel // Q % P * STRIDE - PADDING)[:, None] + (tap // S)[None, :]
        right = (pixel % Q * STRIDE - PADDING)[:, None] + (tap % S)[None, :]
        inside = (down >= 0) & (right >= 0) & (down < H) & (right < W)
        inside = inside & is_pixel[:, None] & is_weight[None, :]
        source = (((pixel // (P * Q))[:, None] * H + down) * W + right) * C + (weight % C)[None, :]
        values = tl.load(own_images + source, mask=inside, other=0.0)
        at = pixel[None, :] * K + output[:, None]
        factors = tl.load(
            own_gradients + at, mask=is_pixel[None, :] & is_output[:, None], other=0.0
        )
        sums = _dot(factors, values, sums, PRECISION)
        bias_sums += tl.sum(factors, axis=1)
    part = split * clients + client
    at = part * (K * WEIGHTS) + output[:, None] * WEIGHTS + weight[None, :]
    tl.store(of_weights + at, sums, mask=is_output[:, None] & is_weight[None, :])
    if tl.program_id(0) % BLOCKS == 0:
        tl.store(of_bias + part * K + output, bias_sums, mask=is_output)


@triton.jit
def _activation_gradient(
    gradients, results, winners, before, COUNT,
    P: tl.constexpr, Q: tl.constexpr, K: tl.constexpr, POOL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient before ReLU and pooling, of COUNT numbers (client and sample, P, Q, K)."""
    offset = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    exists = offset < COUNT
    if POOL:
        row = offset // (Q * K) % P
        column = offset // K % Q
        exists_pooled = exists & (row < P // 2 * 2) & (column < Q // 2 * 2)
        window = (offset // (P * Q * K) * (P // 2) + row // 2) * (Q // 2) + column // 2
        at = window * K + offset % K
        winner = tl.load(winners + at, mask=exists_pooled, other=4)
        passes = winner == row % 2 * 2 + column % 2
        value = tl.load(gradients + at, mask=exists_pooled, other=0.0)
    else:
        passes = tl.load(results + offset, mask=exists, other=0.0) > 0
        value = tl.load(gradients + offset, mask=exists, other=0.0)
    tl.store(before + offset, tl.where(passes, value, 0.0), mask=exists)


@triton.jit
def _sum_splits(parts, total, COUNT, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    offset = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    exists = offset < COUNT
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in range(0, SPLITS):
        sums += tl.load(parts + split * COUNT + offset, mask=exists, other=0.0)
    tl.store(total + offset, sums, mask=exists)


def convolve(
    images: Tensor, weights: Tensor, bias: Tensor | None, shape: Shape, precision: str,
    rectifies: bool, pools: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Outputs (client, sample, row, column, output) of a convolution, and winners of pooling."""
    grid = shape.out_height, shape.out_width
    height, width = (side // 2 for side in grid) if pools else grid
    results = images.new_empty(len(images), shape.batch, height, width, shape.outputs)
    winners = torch.empty_like(results, dtype=torch.int8) if pools else results
    tensors = images, weights, weights if bias is None else bias, results, winners
    sizes = shape.height, shape.width, shape.channels, shape.outputs, *grid
    pixels = shape.batch * height * width * (4 if pools else 1)
    flags = {"BACKWARD": False, "BIAS": bias is not None, "RELU": rectifies, "POOL": pools}
    _launch(tensors, shape, sizes, pixels, PRECISION=precision, **flags)
    return results, winners


def input_gradient(gradients: Tensor, weights: Tensor, shape: Shape, precision: str) -> Tensor:
    """The gradient of a convolution's images from that of its outputs."""
    grid = shape.height, shape.width
    results = gradients.new_empty(len(gradients), shape.batch, *grid, shape.channels)
    tensors = gradients, weights, weights, results, results
    sizes = shape.out_height, shape.out_width, shape.outputs, shape.channels, *grid
    flags = {"BACKWARD": True, "BIAS": False, "RELU": False, "POOL": False}
    pixels = shape.batch * shape.height * shape.width
    _launch(tensors, shape, sizes, pixels, PRECISION=precision, **flags)
    return results


def _launch(
    tensors: tuple[Tensor, ...], shape: Shape, sizes: tuple[int, ...], pixels: int, **flags: Any
) -> None:
    """Start the kernel for these sizes: height, width and channels of the images that it reads,
    then channels, height and width of its results. `pixels` are the rows of its product."""
    *images, channels, outputs, height, width = sizes
    taps = shape.rows * shape.columns * channels
    blocks = {
        "BLOCK_M": 128 if pixels > 64 else max(16, triton.next_power_of_2(pixels)),
        "BLOCK_N": min(64, max(16, triton.next_power_of_2(outputs))),
        "BLOCK_K": 32 if taps > 16 else 16,
    }
    clients = len(tensors[0])
    grid = triton.cdiv(pixels, blocks["BLOCK_M"]), triton.cdiv(outputs, blocks["BLOCK_N"]), clients
    _convolve[grid](
        *tensors, tensors[1].stride(0), shape.batch, *images, channels, outputs, shape.rows,
        shape.columns, height, width, shape.stride, shape.padding, **flags, **blocks,
        num_warps=4, num_stages=3,
    )  # fmt: skip


def weight_gradients(
    images: Tensor, gradients: Tensor, shape: Shape, precision: str
) -> tuple[Tensor, Tensor]:
    """Gradients of weights (client, output, row, column, channel) and of the bias."""
    block_m = min(64, max(16, triton.next_power_of_2(shape.outputs)))
    block_n = min(64, max(16, triton.next_power_of_2(shape.taps)))
    block_k = min(32, max(16, triton.next_power_of_2(shape.out_pixels)))
    tiles = triton.cdiv(shape.outputs, block_m) * triton.cdiv(shape.taps, block_n)
    splits = max(1, min(shape.out_pixels // (4 * block_k), triton.cdiv(TILES, tiles)))
    share = triton.cdiv(triton.cdiv(shape.out_pixels, splits), block_k) * block_k
    splits, clients = triton.cdiv(shape.out_pixels, share), len(images)
    parts = images.new_empty(
        splits, clients, shape.outputs, shape.rows, shape.columns, shape.channels
    )
    bias_parts = images.new_empty(splits, clients, shape.outputs)
    _weight_gradient[tiles, clients, splits](
        images, gradients, parts, bias_parts, clients,
        shape.batch, shape.height, shape.width, shape.channels, shape.outputs, shape.rows,
        shape.columns, shape.out_height, shape.out_width, shape.stride, shape.padding,
        SHARE=share, PRECISION=precision, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
        num_warps=4, num_stages=3,
    )  # fmt: skip
    return sum_splits(parts), sum_splits(bias_parts)


def activation_gradient(
    gradients: Tensor, results: Tensor, winners: Tensor, shape: Shape, pool: bool
) -> Tensor:
    """The gradient before ReLU, and before pooling if `pool`, from that of the results."""
    grid = shape.out_height, shape.out_width, shape.outputs
    before = gradients.new_empty(len(gradients), shape.batch, *grid)
    blocks, count = (triton.cdiv(before.numel(), BLOCK),), before.numel()
    _activation_gradient[blocks](gradients, results, winners, before, count, *grid, pool, BLOCK)
    return before


def sum_splits(parts: Tensor) -> Tensor:
    """Add up the parts (split, ...) in their order."""
    if len(parts) == 1:
        return parts[0]
    total = torch.empty_like(parts[0])
    blocks = (triton.cdiv(total.numel(), BLOCK),)
    _sum_splits[blocks](parts, total, total.numel(), len(parts), BLOCK)
    return total
