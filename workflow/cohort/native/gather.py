"""Code that fetches the samples of a batch, standardizes them and puts each into a lane."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from cohort.native.batched_layout import BatchLayout, chunks
from cohort.native.emitter import Emitter, Index, Offset
from cohort.native.network_stages import Shape
from cohort.native.vectors import transposed

BYTES = "i8"
PARAMETERS = (
    "ptr noalias %memory",
    "ptr noalias %samples",
    "ptr noalias %scale",
    "ptr noalias %shift",
    "ptr noalias %indices",
    "i64 %blocks",
)


def emit_gather(emit: Emitter, layout: BatchLayout, shape: Shape, kind: str) -> None:
    """Emit the function `gather`: from samples (sample, channel, row, column), which are bytes
    (`i8`) or numbers, to maps (block, channel, row, column, lane) or features (number, block,
    lane).

    A number becomes number * scale + shift (channel, row, column).
    """
    goal, lanes = layout.activations[0], layout.lanes
    channels, rows, length = shape if goal.border else (1, 1, math.prod(shape))
    with emit.function("gather", *PARAMETERS), emit.loop("%blocks") as block:
        numbers = [emit.load_int("%indices", (block, lanes), lane) for lane in range(lanes)]
        sources = [
            emit.pointer("%samples", (number, math.prod(shape)), kind=kind) for number in numbers
        ]
        with emit.loop(channels) as channel, emit.loop(rows) as row:
            offsets = (channel, rows * length), (row, length)
            strided = zip((block, channel, row), goal.strides, strict=False)
            line = emit.pointer("%memory", *strided, goal.offset)

            def store(value: str, column: Index, offsets: Sequence[Offset] = offsets) -> None:
                scale, shift = (
                    emit.broadcast(emit.load_number(name, *offsets, column))
                    for name in ("%scale", "%shift")
                )
                emit.store(emit.fma(value, scale, shift), line, (column, goal.strides[3]))

            _emit_row_gather(emit, sources, offsets, kind, length, store)


def _emit_row_gather(
    emit: Emitter,
    sources: Sequence[str],
    offsets: Sequence[Offset],
    kind: str,
    length: int,
    store: Callable[[str, Index], None],
) -> None:
    """Emit code that fetches one row of each sample: whole vectors, transposed. The last overlaps
    with that before. A row shorter than a vector is fetched number by number."""
    lanes = emit.lanes
    if length < lanes:
        with emit.loop(length) as column:
            pointers = [emit.pointer(source, *offsets, column, kind=kind) for source in sources]
            store(_load_lanes(emit, pointers, kind), column)
        return
    for part in chunks(length, lanes):
        start = min(part.start, length - lanes)
        with emit.loop(part.count) as number:
            column = emit.add(emit.mul(number, lanes), start)
            pointers = [emit.pointer(source, *offsets, column, kind=kind) for source in sources]
            vectors = [load_numbers(emit, pointer, kind) for pointer in pointers]
            for index, value in enumerate(transposed(emit, vectors)):
                store(value, emit.add(column, index))


def load_numbers(emit: Emitter, address: str, kind: str) -> str:
    """Emit a load of as many numbers, of type `kind`, as a vector has lanes, from any address."""
    if kind != BYTES:
        return emit.load_anywhere(address)
    loaded = emit.value(f"load <{emit.lanes} x i8>, ptr {address}, align 1")
    return emit.value(f"uitofp <{emit.lanes} x i8> {loaded} to {emit.vector}")


def _load_lanes(emit: Emitter, addresses: Sequence[str], kind: str) -> str:
    """Emit a vector of one number, of type `kind`, from each address."""
    vector = "poison"
    for lane, address in enumerate(addresses):
        number = emit.value(f"load {kind}, ptr {address}")
        if kind == BYTES:
            number = emit.value(f"uitofp i8 {number} to {emit.scalar}")
        element = f"{emit.scalar} {number}"
        vector = emit.value(f"insertelement {emit.vector} {vector}, {element}, i64 {lane}")
    return vector
