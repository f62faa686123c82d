"""Straight-line code of discrete Fourier transforms (DFTs) of a few vectors.

Symmetric places are added and subtracted first, which halves the products: cosines are even, sines
are odd.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from cohort.native.emitter import ZERO, Emitter

Complex = tuple[str, str]
"""The real and imaginary parts of numbers, two vectors."""


class Fourier:
    """DFTs with one period. Places are counted modulo the period."""

    def __init__(self, emit: Emitter, period: int):
        self.emit, self.period = emit, period
        self.half = period // 2
        self.middle = {self.half} if period % 2 == 0 else set()

    def real(self, values: Mapping[int, str]) -> list[tuple[str, ...]]:
        """The spectrum of real numbers at these places, up to half the period: the others are
        conjugates. Frequency 0 and half an even period have no imaginary part."""
        even, odd = self._folded(values)
        found: list[tuple[str, ...]] = []
        for frequency in range(self.half + 1):
            real = self._sum(even, self.cosines(frequency))
            if self.is_real(frequency):
                found.append((real,))
            else:
                found.append((real, self._sum(odd, self.sines(frequency), -1)))
        return found

    def real_inverse(
        self, spectrum: Sequence[tuple[str, ...]], wanted: Iterable[int], scale: float
    ) -> dict[int, str]:
        """Real numbers at the wanted places from half a spectrum, times a scale."""
        whole = {f: parts[0] for f, parts in enumerate(spectrum)}
        imaginary = {f: parts[1] for f, parts in enumerate(spectrum) if len(parts) == 2}
        weight = {f: scale * (1 if self.is_real(f) else 2) for f in whole}

        def at(place: int) -> Complex:
            cosines, sines = self.cosines(place), self.sines(place)
            return (
                self._sum(whole, {f: weight[f] * cosines[f] for f in whole}),
                self._sum(imaginary, {f: weight[f] * sines[f] for f in imaginary}),
            )

        found = {}
        for place, mirrored in self._pairs(wanted):
            even, odd = at(place)
            if place in wanted:
                found[place] = self._subtract(even, odd)
            if mirrored in wanted and mirrored != place:
                found[mirrored] = self._add(even, odd)
        return found

    def complex(
        self, values: Mapping[int, Complex], wanted: Iterable[int], sign: int
    ) -> dict[int, Complex]:
        """The sums of values * exp(sign * 2 pi i * place * other / period) at the wanted places:
        the DFT if sign is -1, its inverse without the division by the period if it is 1."""
        even_real, odd_real = self._folded({place: real for place, (real, _) in values.items()})
        imaginary_parts = {place: imaginary for place, (_, imaginary) in values.items()}
        even_imaginary, odd_imaginary = self._folded(imaginary_parts)
        found = {}
        for place, mirrored in self._pairs(wanted):
            cosines, sines = self.cosines(place), self.sines(place)
            real = self._sum(even_real, cosines), self._sum(odd_imaginary, sines, -sign)
            imaginary = self._sum(even_imaginary, cosines), self._sum(odd_real, sines, sign)
            if place in wanted:
                found[place] = self._add(*real), self._add(*imaginary)
            if mirrored in wanted and mirrored != place:
                found[mirrored] = self._subtract(*real), self._subtract(*imaginary)
        return found

    def is_real(self, frequency: int) -> bool:
        """Whether the spectrum of real numbers is real there."""
        return frequency == 0 or frequency in self.middle

    def cosines(self, place: int) -> dict[int, float]:
        """The cosines of 2 pi * place * other / period, by the other place."""
        return {other: self._wave(math.cos, place * other) for other in range(self.period)}

    def sines(self, place: int) -> dict[int, float]:
        """The sines, likewise."""
        return {other: self._wave(math.sin, place * other) for other in range(self.period)}

    def _wave(self, wave: Callable[[float], float], steps: int) -> float:
        found = wave(2 * math.pi * (steps % self.period) / self.period)
        return round(found) if abs(found - round(found)) < 1e-12 else found

    def _pairs(self, wanted: Iterable[int]) -> list[tuple[int, int]]:
        """The wanted places up to half the period with those that mirror them."""
        places = sorted({min(place, self.period - place) % self.period for place in wanted})
        return [(place, -place % self.period) for place in places]

    def _folded(self, values: Mapping[int, str]) -> tuple[dict[int, str], dict[int, str]]:
        """The even and the odd part of values at places modulo the period."""
        even, odd = {}, {}
        for place, mirrored in self._pairs(values):
            here, there = values.get(place), values.get(mirrored)
            if place == mirrored:
                assert here is not None
                even[place] = here
            elif here is not None and there is not None:
                even[place] = self.emit.op("fadd", here, there)
                odd[place] = self.emit.op("fsub", here, there)
            elif here is not None:
                even[place] = odd[place] = here
            else:
                assert there is not None
                even[place] = there
                odd[place] = self.emit.op("fsub", ZERO, there)
        return even, odd

    def _sum(self, values: Mapping[int, str], factors: Mapping[int, float], sign: int = 1) -> str:
        """The sum of values times factors; nothing is emitted for what is 0."""
        total = ZERO
        for place, value in values.items():
            factor = sign * factors[place]
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
