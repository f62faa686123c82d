"""The code of a network that trains on one sample at a time, with channels in vectors' lanes."""

import math
from itertools import pairwise

from cohort.native import program, single_layers
from cohort.native.augment import BYTES, AugmentCode
from cohort.native.emitter import Emitter, Index, exponential
from cohort.native.program import TRAIN, CodeRequest, StepOptions, emit_entry, pointers


def is_single_sample(request: CodeRequest) -> bool:
    """Whether SingleSampleProgram can train a network. Linear layers must follow ReLUs, as inputs
    of 0 get no gradient. Learning rate times proximal weight must be small: steps are divided by
    1 minus that."""
    options, pairs = request.options, pairwise(request.layers)
    if request.batch != 1 or options is None:
        return False
    rectified = all(before.rectifies or after.is_convolution for before, after in pairs)
    plain = StepOptions(proximal=options.proximal, corrects=options.corrects)
    return rectified and options == plain


class SingleSampleProgram:
    """Emits the native code `train` of a network for batches of one sample."""

    width, slack = 1, 0

    def __init__(self, request: CodeRequest):
        assert request.options is not None
        target, shape = request.target, request.shape
        self.options, self.kind, self.shape = request.options, request.kind, shape
        layout = single_layers.SingleSampleLayout(request.layers, shape, target)
        self.emit, self.layout = Emitter(target), layout
        self.weight_count, self.augment = self.layout.weight_count, None
        if request.augment is not None:
            arena = self.layout.arena
            self.augment = AugmentCode(self.emit, arena, request.augment, shape, self.kind, 1)
            self.kind = target.scalar
        self.memory = self.layout.arena.used
        self.order, self.padding = self.layout.order, self.layout.padding

    def llvm_ir(self) -> str:
        """Emit all functions and return the module as LLVM IR."""
        if self.augment is not None:
            self.augment.emit_function()
        layers = len(self.layout.layers)
        for number in range(layers):
            code = self._layer_code(number)
            with self.emit.function(f"forward{number}", *single_layers.PARAMETERS):
                code.emit_forward()
            with self.emit.function(
                f"backward{number}", *single_layers.PARAMETERS, f"{self.emit.scalar} %lr"
            ):
                code.emit_backward_and_step()
            with self.emit.function(f"prepare{number}", *single_layers.PARAMETERS):
                code.emit_preparation()
        self._emit_cross_entropy()
        with self.emit.function("move", *program.step_parameters(self.emit.scalar)):
            program.emit_move(self.emit, self.weight_count, self.options)
        self._emit_train(layers)
        return self.emit.llvm_ir()

    def _layer_code(
        self, number: int
    ) -> single_layers.SingleSampleLinearCode | single_layers.SingleSampleConvolutionCode:
        if not self.layout.layers[number].is_convolution:
            return single_layers.SingleSampleLinearCode(self.emit, self.layout, number)
        kind = (
            single_layers.SingleSampleConvolutionCode
            if number
            else single_layers.FirstConvolutionCode
        )
        return kind(self.emit, self.layout, number)

    def _emit_cross_entropy(self) -> None:
        """Emit the function `cross_entropy`: for one sample, the gradient of its logits, and sum of
        exponentials and label's gap to the maximum, from which `Kernel.train` makes the loss."""
        emit, lanes, scalar = self.emit, self.layout.lanes, self.emit.scalar
        parameters = "ptr noalias %memory", "i64 %label", "ptr noalias %sum", "ptr noalias %gap"
        with emit.function("cross_entropy", *parameters):
            logits = emit.pointer("%memory", self.layout.activations[-1])
            goal = emit.pointer("%memory", self.layout.gradients[-1])
            vectors = [emit.load(logits, n) for n in range(0, self.layout.widths[-1], lanes)]
            greatest = vectors[0]
            for vector in vectors[1:]:
                greatest = emit.maximum(vector, greatest)
            reduce = f"vector.reduce.fmax.{emit.suffix}"
            maximum = emit.intrinsic(reduce, scalar, (emit.vector, greatest))
            below = emit.broadcast(maximum)
            powers = [exponential(emit, emit.op("fsub", vector, below)) for vector in vectors]
            total = powers[0]
            for power in powers[1:]:
                total = emit.op("fadd", total, power)
            total = emit.lane_sum(total)
            for number, power in enumerate(powers):
                softmax = emit.op("fdiv", power, emit.broadcast(total))
                emit.store(softmax, goal, number * lanes)
            softmax = emit.load_number(goal, "%label")
            emit.store_number(emit.value(f"fsub {scalar} {softmax}, 1.0"), goal, "%label")
            logit = emit.load_number(logits, "%label")
            emit.store_number(total, "%sum")
            emit.store_number(emit.value(f"fsub {scalar} {logit}, {maximum}"), "%gap")

    def _emit_train(self, layers: int) -> None:
        emit, memory = self.emit, pointers("%memory", "%weights")

        def measure() -> None:  # before the first step; each step writes the next distance
            if self.options.proximal:
                goal = emit.pointer("%distances", "%first")
                program.emit_distance(emit, self.weight_count, goal)

        with emit_entry(emit, TRAIN, before=measure) as step:
            self._emit_fetch(step)
            for number in range(layers):
                emit.call(f"prepare{number}", *memory)
                emit.call(f"forward{number}", *memory)
            label = f"i64 {emit.load_int('%labels', step)}"
            results = pointers(*(emit.pointer(name, step) for name in ("%sums", "%gaps")))
            emit.call("cross_entropy", "ptr %memory", label, *results)
            rate = program.rate_before_move(emit, self.options)
            for number in reversed(range(layers)):
                emit.call(f"backward{number}", *memory, f"{emit.scalar} {rate}")
            if self.options != StepOptions():
                program.emit_step_call(emit, "move", emit.pointer("%distances", step, 1))

    def _emit_fetch(self, step: Index) -> None:
        """Emit code that standardizes a sample and puts channels into the lanes of each pixel."""
        emit, (channels, height, width) = self.emit, self.shape
        if self.augment is None:
            index = emit.load_int("%indices", step)
            sample = emit.pointer("%samples", (index, math.prod(self.shape)), kind=self.kind)
        else:
            indices, rows = (emit.pointer(n, step, kind="i32") for n in ("%indices", "%rows"))
            self.augment.emit_call(indices, rows, "1")
            sample = emit.pointer("%memory", self.augment.images)
        strides, is_image = self.layout.strides(0), self.layout.layers[0].is_convolution
        start = self.layout.activations[0] + self.layout.origin(0)
        with emit.loops(channels, height, width) as (channel, row, column):
            position = emit.add(emit.mul(channel, height * width), emit.mul(row, width))
            position = emit.add(position, column)
            address = emit.pointer(sample, position, kind=self.kind)
            value = emit.value(f"load {self.kind}, ptr {address}")
            if self.kind == BYTES:
                value = emit.value(f"uitofp i8 {value} to {emit.scalar}")
            scale, shift = (emit.load_number(name, position) for name in ("%scale", "%shift"))
            value = emit.value(f"fmul contract {emit.scalar} {value}, {scale}")
            value = emit.value(f"fadd contract {emit.scalar} {value}, {shift}")
            offsets = (row, strides[0]), (column, strides[1]), channel
            goal = emit.pointer("%memory", *(offsets if is_image else (position,)), start)
            emit.store_number(value, goal)
