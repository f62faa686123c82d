"""The code of a network for batches, with samples in the lanes of vectors."""

import math
from collections.abc import Iterator, Sequence

from cohort.native import lanes_convolution, program, spectral_convolution
from cohort.native.augment import BYTES, AugmentCode, load_numbers
from cohort.native.emitter import ZERO, Emitter, Index, Offset, chunks, exponential, transposed
from cohort.native.lanes_layers import PARAMETERS, LanesLayout, LinearCode
from cohort.native.program import PREDICT, TRAIN, CodeRequest, emit_entry, pointers

_GATHERED = "memory", "samples", "scale", "shift", "indices"
GATHER_PARAMETERS = *Emitter.noalias(*_GATHERED), "i64 %blocks"
LOSS_PARAMETERS = (
    *(*Emitter.noalias("memory", "weights", "labels"), "i64 %count"),
    *Emitter.noalias("sums", "gaps", "logit_scale", "logit_shift"),
)


class LanesProgram:
    """Emits the native code of a network: `train`, or `predict` if there are no `options`, for
    batches of at most the requested size. `width` is the room for samples in a batch, `memory` how
    many numbers of scratch memory the code needs, which must be 0 at first. Vectors of the last
    weights may end up to `slack` numbers behind them. The weights lie in the network's order."""

    def __init__(self, request: CodeRequest):
        layers, target, shape = request.layers, request.target, request.shape
        self.options, self.shape, self.kind = request.options, shape, request.kind
        self.emit, self.layout = Emitter(target), LanesLayout(layers, request.batch, target)
        self.width, self.weight_count = self.layout.width, self.layout.weight_count
        self.classes = layers[-1].outer
        self.slack = target.lanes * max(layer.taps for layer in layers)
        self.order, self.padding = slice(self.weight_count), 0
        self.augment = None
        if request.augment is not None:
            arena = self.layout.arena
            arguments = request.augment, shape, self.kind, self.width
            self.augment = AugmentCode(self.emit, arena, *arguments)
            self.kind = target.scalar
        self.memory = self.layout.arena.used
        self.codes = [self._layer_code(number) for number in range(len(layers))]

    def _layer_code(self, number: int) -> LinearCode | lanes_convolution.ConvolutionCode:
        if self.layout.spectra[number] is not None:
            return spectral_convolution.SpectralConvolutionCode(self.emit, self.layout, number)
        if self.layout.layers[number].is_convolution:
            return lanes_convolution.ConvolutionCode(self.emit, self.layout, number)
        is_last = number == len(self.layout.layers) - 1
        calibrates = is_last and self.options is not None and self.options.calibrates
        return LinearCode(self.emit, self.layout, number, calibrates)

    def llvm_ir(self) -> str:
        """Emit all functions and return the module as LLVM IR."""
        if self.augment is not None:
            self.augment.emit_function()
        self._emit_gather()
        for number, code in enumerate(self.codes):
            parts = {"prepare": code.emit_preparation, "forward": code.emit_forward}
            if self.options is not None:
                parts["weight_gradient"] = code.emit_weight_gradient
            if self.options is not None and number:
                parts["input_gradient"] = code.emit_input_gradient
            for name, emit_part in parts.items():
                with self.emit.function(f"{name}{number}", *PARAMETERS):
                    emit_part()
        if self.options is None:
            self._emit_predict()
        else:
            self._emit_cross_entropy(self.options.calibrates)
            program.emit_step(self.emit, self.weight_count, self.options)
            self._emit_train()
        return self.emit.llvm_ir()

    def _emit_forward(self, batch: Index) -> tuple[str, list[str]]:
        """Emit code that fetches a batch and passes it through the network; return the size of the
        batch and the arguments of the functions of layers."""
        emit = self.emit
        count = emit.load_int("%counts", batch)
        blocks = emit.value(f"sdiv i64 {emit.add(count, emit.lanes - 1)}, {emit.lanes}")
        indices, samples = emit.pointer("%indices", (batch, self.width), kind="i32"), "%samples"
        if self.augment is not None:
            rows = emit.pointer("%rows", (batch, self.width), kind="i32")
            self.augment.emit_call(indices, rows, count)
            indices, samples = "%places", emit.pointer("%memory", self.augment.images)
        gathered = pointers("%memory", samples, "%scale", "%shift", indices)
        emit.call("gather", *gathered, f"i64 {blocks}")
        arguments = self._layer_arguments(blocks)
        for number in range(len(self.codes)):
            if self.options is not None:
                emit.call(f"prepare{number}", *arguments)
            emit.call(f"forward{number}", *arguments)
        return count, arguments

    def _layer_arguments(self, blocks: str) -> list[str]:
        arrays = pointers("%memory", "%weights", "%gradients")
        return [*arrays, f"i64 {blocks}", *pointers("%logit_scale")]

    def _emit_train(self) -> None:
        emit = self.emit
        with emit_entry(emit, TRAIN) as batch:
            count, arguments = self._emit_forward(batch)
            labels = emit.pointer("%labels", (batch, self.width), kind="i32")
            sums, gaps = (emit.pointer(name, (batch, self.width)) for name in ("%sums", "%gaps"))
            before = *pointers("%memory", "%weights", labels), f"i64 {count}"
            after = pointers(sums, gaps, "%logit_scale", "%logit_shift")
            emit.call("cross_entropy", *before, *after)
            for number in reversed(range(len(self.codes))):
                emit.call(f"weight_gradient{number}", *arguments)
                if number:
                    emit.call(f"input_gradient{number}", *arguments)
            program.emit_step_call(emit, "step", emit.pointer("%distances", batch))

    def _emit_predict(self) -> None:
        """Emit `predict`, which copies the outputs: all samples of one class, then of the next."""
        emit, outputs = self.emit, self.layout.activations[-1]

        def prepare() -> None:
            for number in range(len(self.codes)):
                emit.call(f"prepare{number}", *self._layer_arguments("0"))

        with emit_entry(emit, PREDICT, before=prepare) as batch:
            self._emit_forward(batch)
            count = self.classes * self.width
            with emit.loop(count // emit.lanes) as number:
                value = emit.load("%memory", (number, emit.lanes), outputs.offset)
                emit.store(value, "%outputs", (batch, count), (number, emit.lanes))

    def _emit_gather(self) -> None:
        """Emit `gather`, which puts a batch's samples (sample, channel, row, column) into lanes,
        times scale plus shift: as maps (block, channel, row, column, lane) or features."""
        emit, shape, kind, lanes = self.emit, self.shape, self.kind, self.layout.lanes
        goal = self.layout.activations[0]
        channels, rows, length = shape if goal.border else (1, 1, math.prod(shape))
        with emit.function("gather", *GATHER_PARAMETERS), emit.loop("%blocks") as block:
            numbers = [emit.load_int("%indices", (block, lanes), lane) for lane in range(lanes)]
            size = math.prod(shape)
            sources = [emit.pointer("%samples", (number, size), kind=kind) for number in numbers]
            with emit.loops(channels, rows) as (channel, row):
                offsets = (channel, rows * length), (row, length)
                strided = zip((block, channel, row), goal.strides, strict=False)
                line = emit.pointer("%memory", *strided, goal.offset)
                for column, value in _gathered_columns(emit, sources, offsets, kind, length):
                    at = *offsets, column
                    names = "%scale", "%shift"
                    scale, shift = (emit.broadcast(emit.load_number(name, *at)) for name in names)
                    emit.store(emit.fma(value, scale, shift), line, (column, goal.strides[3]))

    def _emit_cross_entropy(self, calibrated: bool) -> None:
        """Emit `cross_entropy`, the gradient of a batch's mean cross-entropy with respect to the
        logits (class, block, lane). A sample's loss is log(sum) - gap: `sums` gets the sum of the
        exponentials of its logits minus their maximum, `gaps` its own class's logit minus that. If
        `calibrated`, the logits are scale * (output - bias) + bias + shift, by class."""
        emit, lanes = self.emit, self.layout.lanes
        blocks = emit.loop(self.layout.blocks)
        with emit.function("cross_entropy", *LOSS_PARAMETERS), blocks as block:
            if calibrated:
                self._emit_calibration(block)
            greatest = emit.variables([emit.constant(-math.inf)])
            with emit.loop(self.classes) as output, greatest.update() as values:
                values[0] = emit.maximum(emit.load(self._logit_pointer(block, output)), values[0])
            (maximum,) = greatest.load()
            address = emit.pointer("%labels", (block, lanes), kind="i32")
            labels = emit.value(f"load <{lanes} x i32>, ptr {address}, align 4")
            total, gap = self._emit_exponentials(block, maximum, labels)
            emit.store(total, "%sums", (block, lanes))
            emit.store(gap, "%gaps", (block, lanes))
            self._emit_loss_gradient(block, total, labels)

    def _logit_pointer(self, block: Index, output: Index, gradient: bool = False) -> str:
        layout = self.layout
        array = (layout.gradients if gradient else layout.activations)[-1]
        offsets = (block, array.strides[0]), (output, array.strides[1])
        return self.emit.pointer("%memory", *offsets, array.offset)

    def _emit_calibration(self, block: Index) -> None:
        emit, bias_at = self.emit, self.layout.layers[-1].bias
        with emit.loop(self.classes) as output:
            names = "%logit_scale", "%logit_shift"
            scale, shift = (emit.broadcast(emit.load_number(name, output)) for name in names)
            bias = emit.broadcast(emit.load_number("%weights", output, bias_at))
            address = self._logit_pointer(block, output)
            without_bias = emit.op("fsub", emit.load(address), bias)
            emit.store(emit.fma(scale, without_bias, emit.op("fadd", bias, shift)), address)

    def _emit_exponentials(self, block: Index, maximum: str, labels: str) -> list[str]:
        """Emit stores of exp(logit - maximum) as gradients; return the sum, and the label's gap."""
        emit = self.emit
        sums = emit.variables([ZERO, ZERO])
        with emit.loop(self.classes) as output, sums.update() as values:
            below = emit.op("fsub", emit.load(self._logit_pointer(block, output)), maximum)
            power = exponential(emit, below)
            emit.store(power, self._logit_pointer(block, output, gradient=True))
            gap = emit.select(self._is_label(output, labels), below, values[1])
            values[:] = emit.op("fadd", values[0], power), gap
        return sums.load()

    def _is_label(self, output: Index, labels: str) -> str:
        emit, integers = self.emit, f"<{self.layout.lanes} x i32>"
        number = emit.broadcast(emit.value(f"trunc i64 {output} to i32"), "i32")
        return emit.value(f"icmp eq {integers} {labels}, {number}")

    def _emit_loss_gradient(self, block: Index, total: str, labels: str) -> None:
        """Emit (softmax - one-hot label) / batch size; 0 in lanes without a sample."""
        emit, lanes = self.emit, self.layout.lanes
        before = emit.mul(block, lanes)
        remaining = emit.value(f"trunc i64 {emit.value(f'sub i64 %count, {before}')} to i32")
        order = ", ".join(f"i32 {lane}" for lane in range(lanes))
        integers = f"<{lanes} x i32>"
        is_used = emit.value(f"icmp slt {integers} <{order}>, {emit.broadcast(remaining, 'i32')}")
        count = emit.broadcast(emit.value(f"sitofp i64 %count to {emit.scalar}"))
        share = emit.select(is_used, emit.op("fdiv", emit.constant(1), count), ZERO)
        factor = emit.op("fdiv", share, total)
        with emit.loop(self.classes) as output:
            goal = self._logit_pointer(block, output, gradient=True)
            softmax = emit.op("fmul", emit.load(goal), factor)
            label = emit.select(self._is_label(output, labels), share, ZERO)
            emit.store(emit.op("fsub", softmax, label), goal)


def _gathered_columns(
    emit: Emitter, sources: Sequence[str], offsets: Sequence[Offset], kind: str, length: int
) -> Iterator[tuple[Index, str]]:
    """Emit code that fetches one row of each sample: whole vectors, transposed, of which the last
    overlaps with that before; a row shorter than a vector number by number. Yield each column with
    its vector, which has the samples in its lanes."""
    lanes = emit.lanes
    if length < lanes:
        with emit.loop(length) as column:
            addresses = [emit.pointer(source, *offsets, column, kind=kind) for source in sources]
            vector = "poison"
            for lane, address in enumerate(addresses):
                number = emit.value(f"load {kind}, ptr {address}")
                if kind == BYTES:
                    number = emit.value(f"uitofp i8 {number} to {emit.scalar}")
                element = f"{emit.scalar} {number}, i64 {lane}"
                vector = emit.value(f"insertelement {emit.vector} {vector}, {element}")
            yield column, vector
        return
    for part in chunks(length, lanes):
        start = min(part.start, length - lanes)
        with emit.loop(part.count) as vector_number:
            column = emit.add(emit.mul(vector_number, lanes), start)
            addresses = [emit.pointer(source, *offsets, column, kind=kind) for source in sources]
            vectors = [load_numbers(emit, address, kind) for address in addresses]
            for index, value in enumerate(transposed(emit, vectors)):
                yield emit.add(column, index), value
