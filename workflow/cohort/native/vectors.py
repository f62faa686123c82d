"""Functions of vectors that take more than one instruction."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

from cohort.native.emitter import ZERO, Emitter


class FloatFormat(NamedTuple):
    """An IEEE floating-point format, and what the exponential function needs to know of it."""

    integer: str
    mantissa: int
    bias: int
    degree: int  # of the polynomial
    least: int  # below it, the exponential would not be a normal number


FORMATS = {
    "float": FloatFormat("i32", 23, 127, 7, -87),
    "double": FloatFormat("i64", 52, 1023, 13, -708),
}
# ln 2 in two parts; the first has so few digits that its products with exponents are exact.
LN2_HIGH = struct.unpack("f", struct.pack("f", round(math.log(2) * 4096) / 4096))[0]
LN2_LOW = math.log(2) - LN2_HIGH


def transposed(emit: Emitter, vectors: Sequence[str]) -> list[str]:
    """Emit the transpose of a square of vectors, as many as a vector has lanes."""
    rows = list(vectors)
    for step in _steps(emit):
        for row in range(emit.lanes):
            if not row & step:
                pair = _interleaved(emit, rows[row], rows[row + step], step)
                rows[row], rows[row + step] = pair
    return rows


def lane_sums(emit: Emitter, vectors: Sequence[str]) -> str:
    """Emit one vector of the lane sums of each vector, at most as many as there are lanes."""
    rows = [*vectors, *[ZERO] * (emit.lanes - len(vectors))]
    for step in _steps(emit):
        pairs = zip(rows[::2], rows[1::2], strict=True)
        rows = [emit.op("fadd", *_interleaved(emit, left, right, step)) for left, right in pairs]
    return rows[0]


def absolute(emit: Emitter, value: str) -> str:
    """Emit the absolute value of each lane."""
    return emit.intrinsic(f"fabs.{emit.suffix}", emit.vector, (emit.vector, value))


def rounded(emit: Emitter, value: str) -> str:
    """Emit the nearest integer of each lane, ties to even."""
    return emit.intrinsic(f"roundeven.{emit.suffix}", emit.vector, (emit.vector, value))


def reversed_lanes(emit: Emitter, value: str) -> str:
    """Emit a vector with its lanes in reverse order."""
    return _shuffled(emit, value, "poison", list(reversed(range(emit.lanes))))


def exponential(emit: Emitter, value: str) -> str:
    """Emit the exponential of numbers that are not positive: a power of two times a polynomial."""
    form = FORMATS[emit.scalar]
    integers = f"<{emit.lanes} x {form.integer}>"
    least = emit.constant(form.least)
    value = emit.select(emit.op("fcmp olt", value, least), least, value)
    rounder = emit.constant(1.5 * 2**form.mantissa)  # adding it rounds to an integer
    power = emit.fma(value, emit.constant(1 / math.log(2)), rounder)
    power = emit.op("fsub", power, rounder)
    rest = emit.fma(power, emit.constant(-LN2_HIGH), value)
    rest = emit.fma(power, emit.constant(-LN2_LOW), rest)
    result = emit.constant(1 / math.factorial(form.degree))
    for order in range(form.degree - 1, -1, -1):
        result = emit.fma(result, rest, emit.constant(1 / math.factorial(order)))
    exponent = emit.value(f"fptosi {emit.vector} {power} to {integers}")
    exponent = emit.value(f"add {integers} {exponent}, splat ({form.integer} {form.bias})")
    bits = emit.value(f"shl {integers} {exponent}, splat ({form.integer} {form.mantissa})")
    return emit.op("fmul", result, emit.value(f"bitcast {integers} {bits} to {emit.vector}"))


def _steps(emit: Emitter) -> list[int]:
    return [1 << bit for bit in range(emit.lanes.bit_length() - 1)]


def _interleaved(emit: Emitter, left: str, right: str, step: int) -> tuple[str, str]:
    """Emit two vectors that exchange their blocks of `step` lanes off the diagonal."""
    lanes = range(emit.lanes)
    low = [lane + emit.lanes - step if lane & step else lane for lane in lanes]
    high = [lane + emit.lanes if lane & step else lane + step for lane in lanes]
    return _shuffled(emit, left, right, low), _shuffled(emit, left, right, high)


def _shuffled(emit: Emitter, left: str, right: str, lanes: Sequence[int]) -> str:
    indices = ", ".join(f"i32 {lane}" for lane in lanes)
    vectors = f"{emit.vector} {left}, {emit.vector} {right}"
    return emit.value(f"shufflevector {vectors}, <{emit.lanes} x i32> <{indices}>")
