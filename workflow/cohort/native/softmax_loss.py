"""Code of the softmax cross-entropy and its gradient."""

from __future__ import annotations

import math

from cohort.native.batched_layout import BatchLayout
from cohort.native.emitter import ZERO, Emitter, Index
from cohort.native.vectors import exponential

PARAMETERS = (
    "ptr noalias %memory",
    "ptr noalias %weights",
    "ptr noalias %labels",
    "i64 %count",
    "ptr noalias %sums",
    "ptr noalias %gaps",
    "ptr noalias %logit_scale",
    "ptr noalias %logit_shift",
)


class CrossEntropyCode:
    """Emits the gradient of a batch's mean cross-entropy with respect to the logits (class, block,
    lane).

    A sample's loss is log(sum) - gap: `sums` gets the sum of the exponentials of its logits minus
    their maximum, `gaps` its own class's logit minus the maximum. With `calibrated`, the logits are
    scale * (output - bias) + bias + shift, by class, as FedRS and FedLC need.
    """

    def __init__(self, emit: Emitter, layout: BatchLayout, calibrated: bool):
        self.emit, self.layout, self.calibrated = emit, layout, calibrated
        self.stage = layout.stages[-1]
        self.logits, self.gradients = layout.activations[-1], layout.gradients[-1]

    def emit_function(self) -> None:
        """Emit the function `cross_entropy`."""
        emit, lanes = self.emit, self.layout.lanes
        with (
            emit.function("cross_entropy", *PARAMETERS),
            emit.loop(self.layout.blocks) as block,
        ):
            if self.calibrated:
                self._emit_calibration(block)
            maximum = self._emit_maximum(block)
            address = emit.pointer("%labels", (block, lanes), kind="i32")
            labels = emit.value(f"load <{lanes} x i32>, ptr {address}, align 4")
            total, gap = self._emit_exponentials(block, maximum, labels)
            emit.store(total, "%sums", (block, lanes))
            emit.store(gap, "%gaps", (block, lanes))
            self._emit_gradient(block, total, labels)

    def _logit_pointer(self, block: Index, output: Index, gradient: bool = False) -> str:
        array = self.gradients if gradient else self.logits
        offsets = (block, array.strides[0]), (output, array.strides[1])
        return self.emit.pointer("%memory", *offsets, array.offset)

    def _emit_calibration(self, block: Index) -> None:
        emit = self.emit
        with emit.loop(self.stage.outer) as output:
            scale, shift, bias = (
                emit.broadcast(emit.load_number(*address))
                for address in (
                    ("%logit_scale", output),
                    ("%logit_shift", output),
                    ("%weights", output, self.stage.bias),
                )
            )
            address = self._logit_pointer(block, output)
            without_bias = emit.op("fsub", emit.load(address), bias)
            emit.store(emit.fma(scale, without_bias, emit.op("fadd", bias, shift)), address)

    def _emit_maximum(self, block: Index) -> str:
        emit = self.emit
        greatest = emit.variables([emit.constant(-math.inf)])
        with emit.loop(self.stage.outer) as output, greatest.update() as values:
            values[0] = emit.maximum(emit.load(self._logit_pointer(block, output)), values[0])
        return greatest.load()[0]

    def _emit_exponentials(self, block: Index, maximum: str, labels: str) -> list[str]:
        """Emit code that stores exp(logit - maximum) in the gradient's memory; return their sum,
        and the label's logit minus the maximum."""
        emit = self.emit
        sums = emit.variables([ZERO, ZERO])
        with emit.loop(self.stage.outer) as output, sums.update() as values:
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

    def _emit_gradient(self, block: Index, total: str, labels: str) -> None:
        """Emit softmax minus one-hot label, divided by the size of the batch; 0 in lanes without a
        sample."""
        emit, lanes = self.emit, self.layout.lanes
        before = emit.mul(block, lanes)
        left = emit.value(f"trunc i64 {emit.value(f'sub i64 %count, {before}')} to i32")
        order = ", ".join(f"i32 {lane}" for lane in range(lanes))
        integers = f"<{lanes} x i32>"
        is_used = emit.value(f"icmp slt {integers} <{order}>, {emit.broadcast(left, 'i32')}")
        count = emit.broadcast(emit.value(f"sitofp i64 %count to {emit.scalar}"))
        share = emit.select(is_used, emit.op("fdiv", emit.constant(1), count), ZERO)
        factor = emit.op("fdiv", share, total)
        with emit.loop(self.stage.outer) as output:
            goal = self._logit_pointer(block, output, gradient=True)
            softmax = emit.op("fmul", emit.load(goal), factor)
            label = emit.select(self._is_label(output, labels), share, ZERO)
            emit.store(emit.op("fsub", softmax, label), goal)
