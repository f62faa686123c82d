"""Code of a linear layer that trains on one sample at a time, with outputs in the lanes."""

from __future__ import annotations

from cohort.native.batched_layout import split
from cohort.native.emitter import ZERO
from cohort.native.single_code import SingleSampleCode


class SingleSampleLinearCode(SingleSampleCode):
    """Emits a linear layer for one sample that skips inputs that are 0. If ReLU made them so, their
    gradient is 0 too, and their weights do not change."""

    @property
    def _nonzero_count_pointer(self) -> str:
        """The pointer to the stored number of inputs that are not 0."""
        return self.emit.pointer("%memory", self.layout.counts[self.number])

    def emit_forward(self) -> None:
        emit, stage, lanes = self.emit, self.stage, self.lanes
        count = self._emit_input_list()
        for vectors in split(self.outer // lanes, self.layout.target.tile):
            with emit.loop(vectors.count) as part:
                channel = emit.add(emit.mul(part, vectors.size * lanes), vectors.start * lanes)
                bias = emit.pointer("%weights", channel, self.layout.bias[self.number])
                sums = emit.variables([emit.load(bias, n * lanes) for n in range(vectors.size)])
                with self.emit_list_loop(count) as (_, index), sums.update() as values:
                    factor = emit.broadcast(emit.load_number(self.input_pointer(index)))
                    start = self.layout.weight[self.number]
                    weights = emit.pointer("%weights", (index, self.outer), channel, start)
                    loaded = ((n, emit.load(weights, n * lanes)) for n in range(vectors.size))
                    emit.add_outer_product(values, vectors.size, [factor], loaded)
                for number, value in enumerate(sums.load()):
                    value = emit.relu(value) if stage.rectifies else value
                    emit.store(value, self.output_pointer(0, 0, channel), number * lanes)

    def _emit_input_list(self) -> str:
        """Emit code that lists the inputs that are not 0; return how many there are."""
        emit, count = self.emit, self.emit.variables(["0"], "i64")
        with (
            emit.loop(self.layout.sizes[self.number]) as index,
            self.emit_append(count, index) as conditions,
        ):
            number = emit.load_number(self.input_pointer(index))
            conditions.append(emit.value(f"fcmp une {emit.scalar} {number}, 0.0"))
        (length,) = count.load()
        emit.emit(f"store i64 {length}, ptr {self._nonzero_count_pointer}")
        return length

    def emit_backward_and_step(self) -> None:
        """Emit code that reads an input's weights once, for its gradient and for their step."""
        emit, negative_rate = self.emit, self.negative_rate()
        gradients = [
            self._output_gradient(vector * self.lanes) for vector in range(self.outer // self.lanes)
        ]
        for number, gradient in enumerate(gradients):
            start = self.layout.bias[self.number] + number * self.lanes
            bias = emit.pointer("%weights", start)
            emit.store(emit.fma(negative_rate, gradient, emit.load(bias)), bias)
        with self.emit_list_loop(emit.value(f"load i64, ptr {self._nonzero_count_pointer}")) as (
            _,
            index,
        ):
            start = self.layout.weight[self.number]
            weights = emit.pointer("%weights", (index, self.outer), start)
            value = emit.broadcast(emit.load_number(self.input_pointer(index)))
            factor = emit.op("fmul", value, negative_rate)
            sums = [ZERO] * min(4, len(gradients))
            for number, gradient in enumerate(gradients):
                weight = emit.load(weights, number * self.lanes)
                sums[number % 4] = emit.fma(gradient, weight, sums[number % 4])
                changed = emit.fma(factor, gradient, weight)
                emit.store(changed, weights, number * self.lanes)
            while len(sums) > 1:
                sums = [*sums[2:], emit.op("fadd", *sums[:2])]
            goal = self.layout.gradients[self.number]
            emit.store_number(emit.lane_sum(*sums), "%memory", index, goal)

    def _output_gradient(self, channel: int) -> str:
        """Emit the gradient of a vector of outputs from `channel` on, 0 where ReLU is off."""
        emit = self.emit
        gradient = emit.load(self.output_pointer(0, 0, channel, gradient=True))
        if not self.stage.rectifies:
            return gradient
        return emit.where_positive(gradient, emit.load(self.output_pointer(0, 0, channel)))
