"""The base of all stages' code for batches: pointers to its arrays, and gradients of inputs."""

from __future__ import annotations

from cohort.native.batched_layout import Array, BatchLayout, chunks
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

    def __init__(self, emit: Emitter, layout: BatchLayout, number: int):
        self.emit, self.layout, self.number = emit, layout, number
        self.stage, self.lanes = layout.stages[number], layout.lanes
        self.inputs, self.outputs = layout.activations[number : number + 2]
        self.unpooled = layout.unpooled[number]

    def emit_preparation(self) -> None:
        """Emit what is done with the weights before forward passes; nothing by default."""

    def emit_forward(self) -> None:
        """Emit the forward pass."""
        raise NotImplementedError

    def emit_weight_gradient(self) -> None:
        """Emit the gradient of weights and biases, from that of the outputs."""
        raise NotImplementedError

    def emit_input_gradient(self) -> None:
        """Emit the gradient of the inputs."""
        raise NotImplementedError

    def pointer(self, array: Array, *indices: Index, offset: int = 0) -> str:
        """A pointer to the vector of an array at these indices: block, channel, row and column."""
        strided = zip(indices, array.strides, strict=False)
        return self.emit.pointer("%memory", *strided, array.offset + offset)

    def weight_pointer(self, *offsets: Index | tuple[Index, int]) -> str:
        """Emit a pointer to a weight of this stage, moved by the offsets from its first weight."""
        return self.emit.pointer("%weights", *offsets, self.stage.weight)

    def broadcast_bias(self, channel: Index, offset: int = 0) -> str:
        """Emit a vector with an output channel's bias in all lanes."""
        return self.emit.broadcast(
            self.emit.load_number("%weights", channel, self.stage.bias + offset)
        )

    def store_gradient(self, value: str, *indices: Index) -> None:
        """Emit a store of the gradient of an input, 0 where the ReLU before it was off. Where the
        stage before pools, its masks will tell instead."""
        before = self.layout.stages[self.number - 1]
        if before.rectifies and not before.pools:
            value = self.emit.where_positive(
                value, self.emit.load(self.pointer(self.inputs, *indices))
            )
        self.emit.store(value, self.pointer(self.layout.gradients[self.number], *indices))

    def emit_lane_sums(self, offset: int, count: int, goal: str) -> None:
        """Emit the lane sums of `count` vectors, from `offset` on, into `goal`."""
        emit, lanes = self.emit, self.lanes
        for group in chunks(count, lanes):
            with emit.loop(group.count) as number:
                start = offset + group.start * lanes
                source = emit.pointer("%memory", (number, lanes * lanes), start)
                vectors = [emit.load(source, row * lanes) for row in range(group.size)]
                sums = lane_sums(emit, vectors)
                emit.store_first(sums, group.size, goal, (number, lanes), group.start)
