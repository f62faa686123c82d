"""Convolutions by their frequencies, as products of matrices: where maps are small and channels many, these are far fewer multiplications
than one for each pixel, place in the kernel and pair of channels.

A map is taken to go round, but is longer by its padding, so that only zeros meet where it does. Real and imaginary parts stand apart, as
two matrices, and of two frequencies that are each other's conjugates one is kept."""

from __future__ import annotations

import functools
import math
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

Sides = tuple[int, ...]
DEARER = 1.5  # than a multiplication of a direct convolution


class Waves(NamedTuple):
    """The way from values at some places to frequencies, and back."""

    there: Tensor
    back: Tensor


class FourierConvolution:
    """One step of a convolution with a stride of one, on maps of these sides. It remembers what its way back needs."""

    def __init__(self, weight: Tensor, padding: Sides, sides: Sides):
        self.weight, self.sides, self.kernel = weight, tuple(sides), tuple(weight.shape[2:])
        self.outer_sides, lengths = _outer_sides(self.kernel, padding, sides), _lengths(padding, sides)
        self.of_inputs, self.of_outputs = (_waves(lengths, tuple(map(range, area)), weight.dtype) for area in (sides, self.outer_sides))
        moves = tuple(range(pad, pad - side, -1) for pad, side in zip(padding, self.kernel, strict=True))
        self.of_kernel = _waves(lengths, moves, weight.dtype)

    def forward(self, inputs: Tensor) -> Tensor:
        """The outputs, to which no bias is added."""
        self.inputs_waves = _there(self.of_inputs, inputs)
        places = self.weight.permute(2, 3, 0, 1).flatten(0, 1).flatten(1)
        self.weight_waves = (self.of_kernel.there @ places).view(2, -1, *self.weight.shape[:2])
        return _back(self.of_outputs, _product(self.inputs_waves, self.weight_waves.transpose(2, 3)), self.outer_sides)

    def backward(self, gradient: Tensor, further: bool) -> tuple[Tensor, Tensor]:
        """The gradient of the weights, and from that of the outputs to that of the inputs, where it is wanted."""
        waves = _there(self.of_outputs, gradient)
        slopes = _product(waves.transpose(2, 3), self.inputs_waves, conjugate=True)
        of_weight = (self.of_kernel.back @ slopes.flatten(0, 1).flatten(1)).view(*self.kernel, *self.weight.shape[:2]).permute(2, 3, 0, 1)
        of_inputs = _back(self.of_inputs, _product(waves, self.weight_waves, conjugate=True), self.sides) if further else gradient
        return of_weight.contiguous(memory_format=torch.channels_last), of_inputs


def pays(weight: Tensor, padding: Sides, inputs: torch.Size) -> bool:
    """Whether it makes so many multiplications less that a step of training, there and back, is done sooner."""
    (outer, inner), kernel, count, sides = weight.shape[:2], weight.shape[2:], inputs[0], inputs[2:]
    if any(pad >= side for pad, side in zip(padding, kernel, strict=True)):
        return False
    pixels, outer_pixels, places = math.prod(sides), math.prod(_outer_sides(kernel, padding, sides)), math.prod(kernel)
    transforms = 2 * count * (inner * pixels + outer * outer_pixels) + 2 * places * outer * inner
    ours = math.prod(_lengths(padding, sides)) * (transforms + 6 * count * outer * inner)
    return DEARER * ours < 3 * count * outer_pixels * places * outer * inner


def _lengths(padding: Sides, sides: Sides) -> Sides:
    return tuple(side + pad for side, pad in zip(sides, padding, strict=True))


def _outer_sides(kernel: Sides, padding: Sides, sides: Sides) -> Sides:
    return tuple(side + 2 * pad - across + 1 for side, pad, across in zip(sides, padding, kernel, strict=True))


@functools.lru_cache(maxsize=64)
def _waves(lengths: Sides, places: tuple[range, ...], dtype: torch.dtype) -> Waves:
    """For the places of each row and column: a row of cosines for each frequency, then one of sines."""
    height, width = lengths
    pairs = [pair for pair in product(range(height), range(width)) if pair <= _conjugate(pair, lengths)]
    turns = torch.tensor(pairs, dtype=torch.float64) / torch.tensor(lengths)
    angles = 2 * math.pi * turns @ torch.tensor(list(product(*places)), dtype=torch.float64).t()
    there = torch.cat([angles.cos(), -angles.sin()])
    shares = torch.tensor([1 + (pair != _conjugate(pair, lengths)) for pair in pairs]).double() / (height * width)
    return Waves(there.to(dtype), (there.t() * shares.repeat(2)).to(dtype))


def _conjugate(pair: Sides, lengths: Sides) -> Sides:
    return tuple(-frequency % length for frequency, length in zip(pair, lengths, strict=True))


def _there(waves: Waves, maps: Tensor) -> Tensor:
    """Two matrices for each frequency, with a row for each sample and a column for each channel."""
    count, channels = maps.shape[:2]
    pixels = maps.permute(0, 2, 3, 1).reshape(count, -1, channels)
    return torch.bmm(waves.there.expand(count, -1, -1), pixels).view(count, 2, -1, channels).permute(1, 2, 0, 3)


def _back(waves: Waves, frequencies: Tensor, sides: Sides) -> Tensor:
    parts = frequencies.flatten(0, 1).transpose(0, 1)
    pixels = torch.bmm(waves.back.expand(len(parts), -1, -1), parts)
    return pixels.view(len(parts), *sides, -1).permute(0, 3, 1, 2)


def _product(left: Tensor, right: Tensor, conjugate: bool = False) -> Tensor:
    """Of complex matrices, or with the right ones' conjugates."""
    sign = -1 if conjugate else 1
    result = left.new_empty(*left.shape[:3], right.shape[3])
    torch.bmm(left[0], right[0], out=result[0]).baddbmm_(left[1], right[1], alpha=-sign)
    torch.bmm(left[1], right[0], out=result[1]).baddbmm_(left[0], right[1], alpha=sign)
    return result
