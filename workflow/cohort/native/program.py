"""What generated code is asked for, and the functions that it exports, as the emitter and the
caller see them: both functions are called with two arrays, of pointers and of numbers in float64,
and with the range of batches to work on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cohort.native import sgd
from cohort.native.augment import AugmentOptions
from cohort.native.emitter import Emitter, Index
from cohort.native.layers import Layer, Shape
from cohort.native.target import Target

ARRAYS = (
    *("memory", "weights", "gradients", "velocity", "anchor", "correction"),
    *("samples", "scale", "shift", "indices", "labels", "counts", "sums", "gaps", "distances"),
    *("logit_scale", "logit_shift", "outputs", "places", "rows", "instructions", "factors"),
)
NUMBERS = (*sgd.NUMBERS, "factor")
TRAIN, PREDICT = "train", "predict"


@dataclass(frozen=True)
class CodeRequest:
    """A request for code that trains a network by batches of a size, or evaluates the network if
    `options` is None. `kind` is LLVM's type of the samples' numbers; samples are augmented if
    `augment` is given."""

    layers: tuple[Layer, ...]
    shape: Shape
    batch: int
    target: Target
    kind: str
    options: sgd.StepOptions | None
    augment: AugmentOptions | None = None


@contextmanager
def emit_entry(
    emit: Emitter, name: str, before: Callable[[], None] | None = None
) -> Iterator[Index]:
    """Emit an exported function: load its arguments into values named after them, and loop over the
    batches; the `with` block emits the loop's body. `before` emits what comes before the loop."""
    parameters = "ptr %arrays", "ptr %numbers", "i64 %first", "i64 %last"
    convert = "fptrunc double" if emit.scalar == "float" else "bitcast double"
    with emit.function(name, *parameters, exported=True):
        for index, array in enumerate(ARRAYS):
            emit.emit(f"%{array} = load ptr, ptr {emit.pointer('%arrays', index, kind='ptr')}")
        for index, number in enumerate(NUMBERS):
            address = emit.pointer("%numbers", index, kind="double")
            loaded = emit.value(f"load double, ptr {address}")
            emit.emit(f"%{number} = {convert} {loaded} to {emit.scalar}")
        if before is not None:
            before()
        with emit.loop("%last", "%first") as batch:
            yield batch


def pointers(*values: str) -> list[str]:
    """Format values as arguments of LLVM's pointer type: `ptr %value`."""
    return [f"ptr {value}" for value in values]
