"""The base of all stages' code for training on one sample at a time: pointers to its arrays, and
lists of what is not zero."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cohort.native.emitter import Emitter, Index, Offset, Variables
from cohort.native.single_layout import SingleSampleLayout

PARAMETERS = "ptr noalias %memory", "ptr noalias %weights"


class SingleSampleCode:
    """Emits the forward and the backward pass of one stage, with its step, for one sample."""

    def __init__(self, emit: Emitter, layout: SingleSampleLayout, number: int):
        self.emit, self.layout, self.number = emit, layout, number
        self.stage, self.lanes = layout.stages[number], layout.lanes
        self.inner, self.outer = layout.widths[number : number + 2]
        self.row, self.column = layout.strides(number)

    def emit_forward(self) -> None:
        """Emit the forward pass."""
        raise NotImplementedError

    def emit_backward_and_step(self) -> None:
        """Emit this stage's backward pass: the gradient of its inputs, the step of its weights."""
        raise NotImplementedError

    def emit_preparation(self) -> None:
        """Emit what is done with the weights before each forward pass; nothing by default."""

    def input_pointer(self, *offsets: Offset) -> str:
        """A pointer into this stage's inputs, from the corner of their border on."""
        return self.emit.pointer("%memory", *offsets, self.layout.activations[self.number])

    def output_pointer(
        self, row: Index, column: Index, *offsets: Offset, gradient: bool = False
    ) -> str:
        """A pointer to a pixel of this stage's outputs, or of their gradient."""
        number = self.number + 1
        arrays = self.layout.gradients if gradient else self.layout.activations
        strides = self.layout.strides(number)
        pixel = (row, strides[0]), (column, strides[1])
        start = arrays[number] + self.layout.origin(number)
        return self.emit.pointer("%memory", *pixel, *offsets, start)

    def position_pointer(self, row: Index, column: Index, *offsets: Offset) -> str:
        """A pointer to where it is stored which of four pooled pixels was the greatest: its offset
        from the first of them."""
        base = self.emit.pointer("%memory", self.layout.positions[self.number])
        width = self.layout.sides[self.number + 1][1]
        pixel = (row, width * self.outer), (column, self.outer)
        return self.emit.pointer(base, *pixel, *offsets, kind="i32")

    @contextmanager
    def emit_append(self, count: Variables, offset: Index) -> Iterator[list[str]]:
        """Emit code that appends an offset to the stage's list if all conditions hold that the
        `with` block adds to the yielded list. A branch would often be predicted wrongly."""
        emit, conditions = self.emit, ["true"]
        (number,) = count.load()
        base = emit.pointer("%memory", self.layout.lists[self.number])
        goal = emit.pointer(base, number, kind="i32")
        emit.emit(f"store i32 {emit.value(f'trunc i64 {offset} to i32')}, ptr {goal}")
        yield conditions
        holds = conditions[0]
        for condition in conditions[1:]:
            holds = emit.value(f"and i1 {holds}, {condition}")
        more = emit.value(f"zext i1 {holds} to i64")
        count.store([emit.value(f"add i64 {number}, {more}")])

    @contextmanager
    def emit_list_loop(self, count: str) -> Iterator[tuple[Index, str]]:
        """Emit a loop over the stage's list; the `with` block gets an entry's index and offset."""
        emit = self.emit
        base = emit.pointer("%memory", self.layout.lists[self.number])
        with emit.when(emit.value(f"icmp sgt i64 {count}, 0")), emit.loop(count) as entry:
            yield entry, emit.load_int(base, entry)

    def negative_rate(self) -> str:
        """Emit a vector with the negative learning rate in all lanes."""
        return self.emit.op("fsub", "zeroinitializer", self.emit.broadcast("%lr"))
