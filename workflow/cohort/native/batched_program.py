"""The code of a network for batches: samples in the lanes of vectors."""

from __future__ import annotations

from collections.abc import Sequence

from cohort.native import gather, sgd
from cohort.native.augment import AugmentCode, AugmentOptions
from cohort.native.batched_layout import BatchLayout
from cohort.native.convolution import ConvolutionCode
from cohort.native.emitter import Emitter, Index
from cohort.native.entry_points import PREDICT, TRAIN, emit_entry, pointer_arguments
from cohort.native.linear import LinearCode
from cohort.native.network_stages import Shape, Stage
from cohort.native.softmax_loss import CrossEntropyCode
from cohort.native.spectral_convolution import SpectralConvolutionCode
from cohort.native.stage_code import PARAMETERS, StageCode
from cohort.native.target import Target


class BatchedProgram:
    """Emits the native code of a network: `train`, or `predict` if `options` is None, for batches
    of at most `batch` samples.

    `width` is the room for samples in a batch, `memory` how many numbers of scratch memory the code
    needs, which must be 0 at first. Vectors of the last weights may end up to `slack` numbers
    behind them. The weights lie one stage after the other, as in the network.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        shape: Shape,
        batch: int,
        target: Target,
        kind: str,
        options: sgd.StepOptions | None,
        augment: AugmentOptions | None = None,
    ):
        self.options = options
        self.emit, self.layout = Emitter(target), BatchLayout(stages, shape, batch, target)
        self.width, self.weight_count = self.layout.width, self.layout.weight_count
        self.slack = target.lanes * max(stage.taps for stage in stages)
        self.order, self.padding = slice(self.weight_count), 0
        self.augment = None
        if augment is not None:
            arena = self.layout.arena
            self.augment = AugmentCode(self.emit, arena, augment, shape, kind, self.width)
            kind = target.scalar
        self.memory, self.shape, self.kind = self.layout.arena.used, shape, kind
        self._codes = [self._stage_code(number) for number in range(len(stages))]

    def llvm_ir(self) -> str:
        """Emit all functions and return the module as LLVM IR."""
        if self.augment is not None:
            self.augment.emit_function()
        gather.emit_gather(self.emit, self.layout, self.shape, self.kind)
        for number, code in enumerate(self._codes):
            self._emit_stage_functions(number, code)
        if self.options is None:
            self._emit_predict()
        else:
            CrossEntropyCode(self.emit, self.layout, self.options.calibrates).emit_function()
            sgd.emit_step(self.emit, self.weight_count, self.options)
            self._emit_train()
        return self.emit.llvm_ir()

    def _stage_code(self, number: int) -> StageCode:
        if self.layout.spectra[number] is not None:
            return SpectralConvolutionCode(self.emit, self.layout, number)
        if self.layout.stages[number].is_convolution:
            return ConvolutionCode(self.emit, self.layout, number)
        is_last = number == len(self.layout.stages) - 1
        calibrates = is_last and self.options is not None and self.options.calibrates
        return LinearCode(self.emit, self.layout, number, calibrates)

    def _emit_stage_functions(self, number: int, code: StageCode) -> None:
        """Emit a stage's functions: prepare, forward and, if it trains, both gradients."""
        with self.emit.function(f"prepare{number}", *PARAMETERS):
            code.emit_preparation()
        with self.emit.function(f"forward{number}", *PARAMETERS):
            code.emit_forward()
        if self.options is None:
            return
        with self.emit.function(f"weight_gradient{number}", *PARAMETERS):
            code.emit_weight_gradient()
        if number:
            with self.emit.function(f"input_gradient{number}", *PARAMETERS):
                code.emit_input_gradient()

    def _emit_forward(self, batch: Index) -> tuple[str, list[str]]:
        """Emit code that fetches a batch and passes it through the network; return the size of the
        batch and the arguments of the functions of stages."""
        emit = self.emit
        count = emit.load_int("%counts", batch)
        blocks = emit.value(f"sdiv i64 {emit.add(count, emit.lanes - 1)}, {emit.lanes}")
        indices = emit.pointer("%indices", (batch, self.width), kind="i32")
        samples = "%samples"
        if self.augment is not None:
            self.augment.emit_call(
                indices, emit.pointer("%rows", (batch, self.width), kind="i32"), count
            )
            indices, samples = "%places", emit.pointer("%memory", self.augment.images)
        gathered = ["ptr %memory", f"ptr {samples}", *pointer_arguments("scale", "shift")]
        emit.call("gather", *gathered, f"ptr {indices}", f"i64 {blocks}")
        arguments = self._stage_arguments(blocks)
        for number in range(len(self._codes)):
            if self.options is not None:
                emit.call(f"prepare{number}", *arguments)
            emit.call(f"forward{number}", *arguments)
        return count, arguments

    def _stage_arguments(self, blocks: str) -> list[str]:
        """The arguments with which the functions of all stages are called, each as LLVM text."""
        arrays = pointer_arguments("memory", "weights", "gradients")
        return [*arrays, f"i64 {blocks}", *pointer_arguments("logit_scale")]

    def _emit_train(self) -> None:
        emit = self.emit
        with emit_entry(emit, TRAIN) as batch:
            count, arguments = self._emit_forward(batch)
            labels = emit.pointer("%labels", (batch, self.width), kind="i32")
            sums, gaps = (emit.pointer(name, (batch, self.width)) for name in ("%sums", "%gaps"))
            loss_arguments = [
                *pointer_arguments("memory", "weights"),
                f"ptr {labels}",
                f"i64 {count}",
            ]
            loss_arguments += [
                f"ptr {sums}",
                f"ptr {gaps}",
                *pointer_arguments("logit_scale", "logit_shift"),
            ]
            emit.call("cross_entropy", *loss_arguments)
            for number in reversed(range(len(self._codes))):
                emit.call(f"weight_gradient{number}", *arguments)
                if number:
                    emit.call(f"input_gradient{number}", *arguments)
            distance = f"ptr {emit.pointer('%distances', batch)}"
            rates = [f"{emit.scalar} %{name}" for name in sgd.NUMBERS]
            emit.call("step", *pointer_arguments(*sgd.ARRAYS), distance, *rates)

    def _emit_predict(self) -> None:
        """Emit `predict`, which copies the outputs: all samples of one class, then of the next."""
        emit, outputs = self.emit, self.layout.activations[-1]
        with emit_entry(emit, PREDICT, before=self._emit_prepare) as batch:
            self._emit_forward(batch)
            count = self.layout.stages[-1].outer * self.width
            with emit.loop(count // emit.lanes) as number:
                value = emit.load("%memory", (number, emit.lanes), outputs.offset)
                emit.store(value, "%outputs", (batch, count), (number, emit.lanes))

    def _emit_prepare(self) -> None:
        for number in range(len(self._codes)):
            self.emit.call(f"prepare{number}", *self._stage_arguments("0"))
