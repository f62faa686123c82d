"""The base of all stages' code for batches: pointers to its arrays, and gradients of inputs."""

from __future__ import annotations

from cohort.native.batched_layout import Array, Layout, chunks
from cohort.native.emitter import Emitter, Index
from cohort.native.vectors import lane_sums

PARAMETERS = (
    "ptr noalias %memory",
    "ptr noalias %weights",
    "ptr noalias %gradients",
    "i64 %blocks",
    "ptr noalias %logit_scale",
)
"""Of all functions of stages: scratch memory, weights, their gradients, how many blocks of samples
the batch has, and what calibrated logits are scaled by."""


class StageCode:
    """Emits the forward and backward pass of one stage, for batches of samples in the lanes."""

    def __init__(self, emit: Emitter, layout: Layout, number: int):
        self.emit, self.layout, self.number = emit, layout, number
        self.stage, self.lanes = layout.stages[number], layout.lanes
        self.inputs, self.outputs = layout.activations[number : number + 2]
        self.unpooled = layout.unpooled[number]

    def prepare(self) -> None:
        """Emit what is done with the weights before forward passes."""

    def forward(self) -> None:
        """Emit the forward pass."""
        raise NotImplementedError

    def weight_gradient(self) -> None:
        """Emit the gradient of weights and biases, from that of the outputs."""
        raise NotImplementedError

    def input_gradient(self) -> None:
        """Emit the gradient of the inputs."""
        raise NotImplementedError

    def at(self, array: Array, *indices: Index, offset: int = 0) -> str:
        """A pointer to the vector at these indices: block, channel, row and column."""
        strided = zip(indices, array.strides, strict=False)
        return self.emit.pointer("%memory", *strided, array.offset + offset)

    def weight(self, *offsets: Index | tuple[Index, int]) -> str:
        """A pointer to a weight of this stage."""
        return self.emit.pointer("%weights", *offsets, self.stage.weight)

    def broadcast_bias(self, channel: Index, offset: int = 0) -> str:
        """A vector with an output channel's bias in all lanes."""
        return self.emit.broadcast(
            self.emit.load_number("%weights", channel, self.stage.bias + offset)
        )

    def store_input_gradient(self, value: str, *indices: Index) -> None:
        """Store the gradient of an input, unless the ReLU before it was off. Where that stage
        pools, its masks will tell."""
        before = self.layout.stages[self.number - 1]
        if before.rectifies and not before.pools:
            value = self.emit.where_positive(value, self.emit.load(self.at(self.inputs, *indices)))
        self.emit.store(value, self.at(self.layout.gradients[self.number], *indices))

    def sum_lanes(self, offset: int, count: int, goal: str) -> None:
        """Sum each of some vectors over its lanes."""
        emit, lanes = self.emit, self.lanes
        for group in chunks(count, lanes):
            with emit.loop(group.count) as number:
                start = offset + group.start * lanes
                source = emit.pointer("%memory", (number, lanes * lanes), start)
                vectors = [emit.load(source, row * lanes) for row in range(group.size)]
                sums = lane_sums(emit, vectors)
                emit.store_first(sums, group.size, goal, (number, lanes), group.start)
