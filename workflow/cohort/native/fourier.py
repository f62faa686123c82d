"""Straight-line code of discrete Fourier transforms (DFTs) of a few vectors.

Values at n and at period - n are added and subtracted first, which halves the products: cosines
are even, sines are odd.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from cohort.native.emitter import ZERO, Emitter

Complex = tuple[str, str]
"""The real and imaginary parts of numbers, two vectors."""


class Fourier:
    """Emits discrete Fourier transforms (DFTs) of a period, modulo which indices are counted."""

    def __init__(self, emit: Emitter, period: int):
        self.emit, self.period = emit, period
        self.half = period // 2
        self.middle = {self.half} if period % 2 == 0 else set()

    def real_dft(self, values: Mapping[int, str]) -> list[tuple[str, ...]]:
        """Emit the DFT of real numbers, given by index, up to half the period: other frequencies
        are conjugates. Frequency 0 and half an even period have no imaginary part."""
        even, odd = self._even_and_odd_parts(values)
        spectrum: list[tuple[str, ...]] = []
        for frequency in range(self.half + 1):
            real = self._sum(even, self.cosines(frequency))
            if self.is_real(frequency):
                spectrum.append((real,))
            else:
                spectrum.append((real, self._sum(odd, self.sines(frequency), -1)))
        return spectrum

    def inverse_real_dft(
        self, spectrum: Sequence[tuple[str, ...]], wanted: Iterable[int], scale: float
    ) -> dict[int, str]:
        """Emit the real numbers at the wanted indices from half a spectrum, times a scale."""
        whole = {f: parts[0] for f, parts in enumerate(spectrum)}
        imaginary = {f: parts[1] for f, parts in enumerate(spectrum) if len(parts) == 2}
        weight = {f: scale * (1 if self.is_real(f) else 2) for f in whole}

        def at(index: int) -> Complex:
            cosines, sines = self.cosines(index), self.sines(index)
            return (
                self._sum(whole, {f: weight[f] * cosines[f] for f in whole}),
                self._sum(imaginary, {f: weight[f] * sines[f] for f in imaginary}),
            )

        numbers = {}
        for index, mirrored in self._mirror_pairs(wanted):
            even, odd = at(index)
            if index in wanted:
                numbers[index] = self._subtract(even, odd)
            if mirrored in wanted and mirrored != index:
                numbers[mirrored] = self._add(even, odd)
        return numbers

    def complex_dft(
        self, values: Mapping[int, Complex], wanted: Iterable[int], sign: int
    ) -> dict[int, Complex]:
        """Emit the sums over n of values * exp(sign * 2 pi i * k * n / period) at the wanted
        indices k: a DFT if sign is -1, its inverse without the division by the period if it is
        1."""
        even_real, odd_real = self._even_and_odd_parts(
            {index: real for index, (real, _) in values.items()}
        )
        imaginary_parts = {index: imaginary for index, (_, imaginary) in values.items()}
        even_imaginary, odd_imaginary = self._even_and_odd_parts(imaginary_parts)
        sums = {}
        for index, mirrored in self._mirror_pairs(wanted):
            cosines, sines = self.cosines(index), self.sines(index)
            real = (self._sum(even_real, cosines), self._sum(odd_imaginary, sines, -sign))
            imaginary = (self._sum(even_imaginary, cosines), self._sum(odd_real, sines, sign))
            if index in wanted:
                sums[index] = self._add(*real), self._add(*imaginary)
            if mirrored in wanted and mirrored != index:
                sums[mirrored] = self._subtract(*real), self._subtract(*imaginary)
        return sums

    def is_real(self, frequency: int) -> bool:
        """Whether the spectrum of real numbers is real at this frequency."""
        return frequency == 0 or frequency in self.middle

    def cosines(self, index: int) -> dict[int, float]:
        """Cosines of 2 pi k n / period for an index k, by n."""
        return {n: self._wave(math.cos, index * n) for n in range(self.period)}

    def sines(self, index: int) -> dict[int, float]:
        """Sines of 2 pi k n / period for an index k, by n."""
        return {n: self._wave(math.sin, index * n) for n in range(self.period)}

    def _wave(self, wave: Callable[[float], float], steps: int) -> float:
        value = wave(2 * math.pi * (steps % self.period) / self.period)
        return round(value) if abs(value - round(value)) < 1e-12 else value

    def _mirror_pairs(self, wanted: Iterable[int]) -> list[tuple[int, int]]:
        """Pairs of an index up to half the period and its mirror image, at least one wanted."""
        indices = sorted({min(index, self.period - index) % self.period for index in wanted})
        return [(index, -index % self.period) for index in indices]

    def _even_and_odd_parts(
        self, values: Mapping[int, str]
    ) -> tuple[dict[int, str], dict[int, str]]:
        """Emit the even part of values, then the odd part, each by index up to half the period."""
        even, odd = {}, {}
        for index, mirrored in self._mirror_pairs(values):
            here, there = values.get(index), values.get(mirrored)
            if index == mirrored:
                assert here is not None
                even[index] = here
            elif here is not None and there is not None:
                even[index] = self.emit.op("fadd", here, there)
                odd[index] = self.emit.op("fsub", here, there)
            elif here is not None:
                even[index] = odd[index] = here
            else:
                assert there is not None
                even[index] = there
                odd[index] = self.emit.op("fsub", ZERO, there)
        return even, odd

    def _sum(self, values: Mapping[int, str], factors: Mapping[int, float], sign: int = 1) -> str:
        """Emit the sum of values times factors; nothing is emitted for what is 0."""
        total = ZERO
        for index, value in values.items():
            factor = sign * factors[index]
            if factor == 0:
                continue
            if total == ZERO and factor == 1:
                total = value
            elif total == ZERO:
                total = self.emit.op("fmul", value, self.emit.constant(factor))
            elif abs(factor) == 1:
                total = self.emit.op("fadd" if factor > 0 else "fsub", total, value)
            else:
                total = self.emit.fma(value, self.emit.constant(factor), total)
        return total

    def _add(self, left: str, right: str) -> str:
        if ZERO in (left, right):
            return right if left == ZERO else left
        return self.emit.op("fadd", left, right)

    def _subtract(self, left: str, right: str) -> str:
        return left if right == ZERO else self.emit.op("fsub", left, right)
