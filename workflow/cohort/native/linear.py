"""Code of a linear layer with samples in the lanes."""

from __future__ import annotations

from cohort.native.batched_layout import Array, BatchLayout
from cohort.native.emitter import ZERO, Emitter, Index
from cohort.native.products import Products
from cohort.native.stage_code import StageCode


class LinearCode(StageCode):
    """Emits a linear layer: products of weights (outer, inner) and features (inner, block, lane),
    with a tile of the result (outer, block, lane) in registers at a time. `calibrates`: the
    gradient of the outputs is that of calibrated logits."""

    def __init__(self, emit: Emitter, layout: BatchLayout, number: int, calibrates: bool = False):
        super().__init__(emit, layout, number)
        self.calibrates, self.products = calibrates, Products(emit, layout)

    def emit_forward(self) -> None:
        stage = self.stage

        def store(value: str, block: Index, output: Index) -> None:
            value = self.emit.relu(value) if stage.rectifies else value
            self.emit.store(value, self.feature_pointer(self.outputs, block, output))

        self.products.emit_product(
            stage.outer,
            stage.inner,
            lambda block, inner: self.feature_pointer(self.inputs, block, inner),
            self.weight_pointer(),
            (stage.inner, 1),
            store,
            self.broadcast_bias,
        )

    def emit_weight_gradient(self) -> None:
        self._emit_bias_gradient()
        stage, gradients = self.stage, self.layout.gradients[self.number + 1]
        self.products.emit_transpose(
            stage.inner,
            lambda block, inner: self.feature_pointer(self.inputs, block, inner),
            self.layout.blocks,
        )
        self.products.emit_transposed_product(
            stage.outer,
            stage.inner,
            lambda block, outer: self.feature_pointer(gradients, block, outer),
            self.layout.width,
            self.emit.pointer("%gradients", stage.weight),
        )

    def emit_input_gradient(self) -> None:
        stage, gradients = self.stage, self.layout.gradients[self.number + 1]
        self.products.emit_product(
            stage.inner,
            stage.outer,
            lambda block, outer: self.feature_pointer(gradients, block, outer),
            self.weight_pointer(),
            (1, stage.inner),
            lambda value, block, inner: self.store_gradient(value, block, 0, 0, inner),
        )

    def feature_pointer(self, array: Array, block: Index, number: Index) -> str:
        """A pointer to a number of this layer's inputs or outputs, in one row over all axes."""
        return self.pointer(array, block, 0, 0, number)

    def _emit_bias_gradient(self) -> None:
        """Emit the bias gradient: outputs' gradients summed over samples."""
        emit, gradients = self.emit, self.layout.gradients[self.number + 1]
        with emit.loop(self.stage.outer) as outer:
            total = emit.variables([ZERO])
            with emit.loop(self.layout.blocks) as block, total.update() as values:
                address = self.feature_pointer(gradients, block, outer)
                gradient = emit.load(address)
                values[0] = emit.op("fadd", values[0], gradient)
                if self.calibrates:  # which leaves the bias as it is
                    scale = emit.broadcast(emit.load_number("%logit_scale", outer))
                    emit.store(emit.op("fmul", gradient, scale), address)
            emit.store_number(emit.lane_sum(*total.load()), "%gradients", outer, self.stage.bias)
