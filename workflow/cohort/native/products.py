"""Code of matrix products with samples in the lanes: a tile of the result stays in registers."""

from __future__ import annotations

from collections.abc import Callable

from cohort.native.batched_layout import ABREAST, L1_SHARE, BatchLayout, Ranges, chunks, split
from cohort.native.emitter import ZERO, Emitter, Index
from cohort.native.vectors import transposed

Pointer = Callable[[Index, Index], str]
"""Points to a vector (row, block, lane), by block of samples and number of the row."""
Store = Callable[[str, Index, Index], None]
"""Stores a vector, by block of samples and number of the row."""
Start = Callable[[Index], str]
"""The vector from which the sum of a row starts, by the row's number."""


class Products:
    """Emits products of matrices of weights and matrices of samples."""

    def __init__(self, emit: Emitter, layout: BatchLayout):
        self.emit, self.layout, self.lanes = emit, layout, layout.lanes

    def emit_product(
        self,
        results: int,
        terms: int,
        source: Pointer,
        weights: str,
        strides: tuple[int, int],
        store: Store,
        start: Start = lambda result: ZERO,
    ) -> None:
        """Emit a product of weights and samples: the sum over terms of weights (result, term),
        whose `strides` are given, times source (term, block, lane), plus `start(result)`.

        `store(value, block, result)` emits a store of each sum. Large weights whose first stride is
        1 are packed.
        """
        if strides[0] == 1 and results * terms * self.layout.target.size > L1_SHARE:
            self._emit_packed_product(results, terms, source, weights, strides[1], store, start)
            return
        for part in split(results, self.layout.target.tile // self.layout.abreast):
            with self.emit.loop(part.count) as number:
                first = self.emit.add(self.emit.mul(number, part.size), part.start)
                self._emit_tiles(first, part.size, terms, source, weights, strides, store, start)

    def _emit_packed_product(
        self,
        results: int,
        terms: int,
        source: Pointer,
        weights: str,
        stride: int,
        store: Store,
        start: Start,
    ) -> None:
        """Emit a product that first copies the weights of as many results as a vector has lanes,
        which lie far apart, side by side."""
        emit, lanes = self.emit, self.lanes
        packed = emit.pointer("%memory", self.layout.packed)
        for strips in chunks(results, lanes):
            with emit.loop(strips.count) as strip:
                begin = emit.add(emit.mul(strip, lanes), strips.start)
                with emit.loop(terms) as term:
                    values = emit.load_anywhere(weights, begin, (term, stride))
                    emit.store(values, packed, (term, lanes))
                for part in split(strips.size, self.layout.target.tile // self.layout.abreast):
                    for number in range(part.count):
                        offset = part.start + number * part.size
                        weights_of_part = emit.pointer(packed, offset)
                        first = emit.add(begin, offset)
                        arguments = source, weights_of_part, (1, lanes), store, start
                        self._emit_tiles(first, part.size, terms, *arguments, is_relative=True)

    def _emit_tiles(
        self,
        first: Index,
        size: int,
        terms: int,
        source: Pointer,
        weights: str,
        strides: tuple[int, int],
        store: Store,
        start: Start,
        is_relative: bool = False,
    ) -> None:
        """Emit `size` results, from `first` on, for all blocks of samples. If `is_relative`,
        `weights` begins at the weights of result `first`."""
        emit, abreast = self.emit, self.layout.abreast
        with emit.loop(self.layout.blocks // abreast) as group:
            block = emit.mul(group, abreast)
            starts = [start(emit.add(first, result)) for result in range(size)]
            sums = emit.variables([value for value in starts for _ in range(abreast)])
            with emit.loop(terms) as term, sums.update() as values:
                offset = 0 if is_relative else first
                term_weights = emit.pointer(weights, (offset, strides[0]), (term, strides[1]))
                self._emit_term(values, source(block, term), term_weights, strides[0])
            for number, value in enumerate(sums.load()):
                result, which = divmod(number, abreast)
                store(value, emit.add(block, which), emit.add(first, result))

    def _emit_term(self, sums: list[str], source: str, weights: str, stride: int) -> None:
        emit, abreast = self.emit, self.layout.abreast
        loaded = [(index, emit.load(source, index * self.lanes)) for index in range(abreast)]
        for result in range(len(sums) // abreast):
            row = sums[result * abreast : (result + 1) * abreast]
            factor = emit.broadcast(emit.load_number(weights, result * stride))
            emit.add_outer_product(row, abreast, [factor], loaded)
            sums[result * abreast : (result + 1) * abreast] = row

    def emit_transpose(self, count: int, source: Pointer, blocks: Index) -> None:
        """Emit a transposition of `count` rows (row, block, lane) into scratch memory `transposed`
        (sample, row).

        Vectors then run along rows, so that sums over samples need no shuffles. `source(block,
        row)` is the pointer to a vector, and `blocks` their number.
        """
        emit, lanes, row = self.emit, self.lanes, self._row_length(count)
        for part in chunks(count, lanes):
            with emit.loop(part.count) as number, emit.loop(blocks) as block:
                first = emit.add(emit.mul(number, lanes), part.start)
                rows = [
                    emit.load(source(block, emit.add(first, index))) if index < part.size else ZERO
                    for index in range(lanes)
                ]
                offsets = first, (block, lanes * row), self.layout.transposed
                goal = emit.pointer("%memory", *offsets)
                for lane, values in enumerate(transposed(emit, rows)):
                    emit.store(values, goal, lane * row)

    def emit_transposed_product(
        self, results: int, count: int, gradients: Pointer, samples: Index, goal: str
    ) -> None:
        """Emit sums over samples: `goal` (result, row) gets each result's gradient (result, sample)
        times each of the `count` rows that were transposed last (sample, row)."""
        vectors, left = divmod(count, self.lanes)
        inner = [(part, self.lanes) for part in split(vectors, ABREAST)]
        inner += [(Ranges(vectors, 1, 1), left)] if left else []
        for part, used in inner:
            for outer in split(results, self.layout.target.tile // ABREAST):
                self._emit_transposed_tiles(outer, part, used, count, gradients, samples, goal)

    def _emit_transposed_tiles(
        self,
        outer: Ranges,
        inner: Ranges,
        used: int,
        count: int,
        gradients: Pointer,
        samples: Index,
        goal: str,
    ) -> None:
        emit, lanes, wide = self.emit, self.lanes, inner.size
        with emit.loop(inner.count) as tile, emit.loop(outer.count) as part:
            first = emit.add(emit.mul(part, outer.size), outer.start)
            column = emit.add(emit.mul(tile, wide * lanes), inner.start * lanes)
            sums = emit.variables([ZERO] * (outer.size * wide))
            pointers = [gradients(0, emit.add(first, result)) for result in range(outer.size)]
            with emit.loop(samples) as sample, sums.update() as values:
                offsets = column, (sample, self._row_length(count)), self.layout.transposed
                source = emit.pointer("%memory", *offsets)
                factors = [
                    emit.broadcast(emit.load_number(pointer, sample)) for pointer in pointers
                ]
                loaded = ((index, emit.load(source, index * lanes)) for index in range(wide))
                emit.add_outer_product(values, wide, factors, loaded)
            corner = emit.pointer(goal, (first, count), column)
            for number, value in enumerate(sums.load()):
                result, vector = divmod(number, wide)
                emit.store_first(value, used, corner, result * count + vector * lanes)

    def _row_length(self, count: int) -> int:
        """The length of a sample's row of `count` numbers, in whole vectors."""
        return -(-count // self.lanes) * self.lanes
