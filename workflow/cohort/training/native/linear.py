"""Code of a linear layer with samples in the lanes."""

from __future__ import annotations

from cohort.training.native.emitter import ZERO, Emitter, Index
from cohort.training.native.layout import ABREAST, Array, Layout, Part, chunks, split
from cohort.training.native.stage_code import StageCode
from cohort.training.native.vectors import transposed


class LinearCode(StageCode):
    """Matrix products, a tile of the result in registers at a time. `calibrates`: the gradient of
    the outputs is that of calibrated logits."""

    def __init__(self, emit: Emitter, layout: Layout, number: int, calibrates: bool = False):
        super().__init__(emit, layout, number)
        self.calibrates = calibrates

    def forward(self) -> None:
        for part in self._results(self.stage.outer):
            self._forward_tiles(part)

    def input_gradient(self) -> None:
        for part in self._results(self.stage.inner):
            self._input_gradient_tiles(part)

    def weight_gradient(self) -> None:
        self._bias_gradient()
        self._transpose_inputs()
        vectors, left = divmod(self.stage.inner, self.lanes)
        tail = [Part(vectors, 1, 1)] if left else []
        for inner in [*split(vectors, ABREAST), *tail]:
            for outer in split(self.stage.outer, self.layout.target.tile // ABREAST):
                self._weight_gradient_tiles(outer, inner, left if inner in tail else self.lanes)

    def feature(self, array: Array, block: Index, number: Index) -> str:
        """A pointer to a number of what this layer reads or puts out, channels and pixels in one
        row."""
        return self.at(array, block, 0, 0, number)

    def _results(self, count: int) -> list[Part]:
        return split(count, self.layout.target.tile // self.layout.abreast)

    def _forward_tiles(self, results: Part) -> None:
        """Some outputs of some blocks of samples at once."""
        emit, stage, abreast = self.emit, self.stage, self.layout.abreast
        with (
            emit.loop(self.layout.blocks // abreast) as group,
            emit.loop(results.count) as part,
        ):
            channel = emit.add(emit.mul(part, results.size), results.start)
            block = emit.mul(group, abreast)
            biases = [self.broadcast_bias(channel, one) for one in range(results.size)]
            sums = emit.variables([bias for bias in biases for _ in range(abreast)])
            with emit.loop(stage.inner) as inner, sums.changed() as values:
                weights = self.weight((channel, stage.inner), inner)
                source = self.feature(self.inputs, block, inner)
                self._add_products(values, source, weights, stage.inner)
            for place, value in enumerate(sums.get()):
                one, number = divmod(place, abreast)
                value = emit.relu(value) if stage.rectifies else value
                indices = emit.add(block, number), emit.add(channel, one)
                goal = self.feature(self.outputs, *indices)
                emit.store(value, goal)

    def _input_gradient_tiles(self, results: Part) -> None:
        """The gradients of some inputs of some blocks of samples at once."""
        emit, stage, abreast = self.emit, self.stage, self.layout.abreast
        gradients, inputs = self.layout.gradients[self.number + 1], self.inputs
        with (
            emit.loop(self.layout.blocks // abreast) as group,
            emit.loop(results.count) as part,
        ):
            channel = emit.add(emit.mul(part, results.size), results.start)
            block = emit.mul(group, abreast)
            sums = emit.variables([ZERO] * (results.size * abreast))
            with emit.loop(stage.outer) as outer, sums.changed() as values:
                weights = self.weight((outer, stage.inner), channel)
                self._add_products(values, self.feature(gradients, block, outer), weights, 1)
            for place, value in enumerate(sums.get()):
                one, number = divmod(place, abreast)
                self.store_input_gradient(
                    value, emit.add(block, number), 0, 0, emit.add(channel, one)
                )

    def _add_products(self, sums: list[str], source: str, weights: str, stride: int) -> None:
        """Add one term to the sums of some results and blocks. `stride` is the distance between the
        weights of two results."""
        emit, abreast = self.emit, self.layout.abreast
        loaded = [(place, emit.load(source, place * self.lanes)) for place in range(abreast)]
        for one in range(len(sums) // abreast):
            row = sums[one * abreast : (one + 1) * abreast]
            factor = emit.broadcast(emit.load_number(weights, one * stride))
            emit.add_outer_product(row, abreast, [factor], loaded)
            sums[one * abreast : (one + 1) * abreast] = row

    def _bias_gradient(self) -> None:
        """Sums over the samples."""
        emit, gradients = self.emit, self.layout.gradients[self.number + 1]
        with emit.loop(self.stage.outer) as outer:
            total = emit.variables([ZERO])
            with emit.loop(self.layout.blocks) as block, total.changed() as values:
                place = self.feature(gradients, block, outer)
                gradient = emit.load(place)
                values[0] = emit.op("fadd", values[0], gradient)
                if self.calibrates:  # which leaves the bias as it is
                    scale = emit.broadcast(emit.load_number("%logit_scale", outer))
                    emit.store(emit.op("fmul", gradient, scale), place)
            emit.store_number(emit.lane_sum(*total.get()), "%gradients", outer, self.stage.bias)

    def _transpose_inputs(self) -> None:
        """Transpose the inputs, so that lanes are inputs, and sums over samples need no shuffles."""
        emit, lanes = self.emit, self.lanes
        for inner in chunks(self.stage.inner, lanes):
            with emit.loop(inner.count) as part, emit.loop(self.layout.blocks) as block:
                feature = emit.add(emit.mul(part, lanes), inner.start)
                source = self.feature(self.inputs, block, feature)
                rows = [
                    emit.load(source, place * self.layout.width) if place < inner.size else ZERO
                    for place in range(lanes)
                ]
                goal = emit.pointer("%memory", feature, (block, lanes * self._row), self._place)
                for lane, row in enumerate(transposed(emit, rows)):
                    emit.store(row, goal, lane * self._row)

    def _weight_gradient_tiles(self, outputs: Part, inputs: Part, used: int) -> None:
        """The gradients of some weights at once; `used` lanes of the inputs' vectors are there."""
        emit, stage, lanes, wide = self.emit, self.stage, self.lanes, inputs.size
        gradients = self.layout.gradients[self.number + 1]
        with emit.loop(inputs.count) as tile, emit.loop(outputs.count) as part:
            outer = emit.add(emit.mul(part, outputs.size), outputs.start)
            inner = emit.add(emit.mul(tile, wide * lanes), inputs.start * lanes)
            sums = emit.variables([ZERO] * (outputs.size * wide))
            with emit.loop(self.layout.width) as sample, sums.changed() as values:
                source = emit.pointer("%memory", inner, (sample, self._row), self._place)
                row = emit.pointer(self.feature(gradients, 0, outer), sample)
                factors = [
                    emit.broadcast(emit.load_number(row, one * self.layout.width))
                    for one in range(outputs.size)
                ]
                loaded = ((place, emit.load(source, place * lanes)) for place in range(wide))
                emit.add_outer_product(values, wide, factors, loaded)
            goal = emit.pointer("%gradients", (outer, stage.inner), inner, stage.weight)
            for place, value in enumerate(sums.get()):
                one, vector = divmod(place, wide)
                emit.store_first(value, used, goal, one * stage.inner + vector * lanes)

    @property
    def _row(self) -> int:
        """How many numbers a sample's inputs take, in whole vectors."""
        return -(-self.stage.inner // self.lanes) * self.lanes

    @property
    def _place(self) -> int:
        return self.layout.transposed
