"""The functions that generated code exports, as the emitter and the caller see them.

Both are called with two arrays, of pointers and of numbers in float64, and with the range of
batches to work on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cohort.native import sgd
from cohort.native.emitter import Emitter, Index

ARRAYS = (
    "memory",
    "weights",
    "gradients",
    "velocity",
    "anchor",
    "correction",
    "samples",
    "scale",
    "shift",
    "indices",
    "labels",
    "counts",
    "sums",
    "gaps",
    "distances",
    "logit_scale",
    "logit_shift",
    "outputs",
    "places",
    "rows",
    "instructions",
    "factors",
)
NUMBERS = (*sgd.NUMBERS, "factor")
TRAIN, PREDICT = "train", "predict"


@contextmanager
def emit_entry(
    emit: Emitter, name: str, before: Callable[[], None] | None = None
) -> Iterator[Index]:
    """Emit an exported function: load its arguments into values named after them, and loop over the
    batches; the `with` block emits the loop's body. `before` emits what comes before the loop."""
    parameters = "ptr %arrays", "ptr %numbers", "i64 %first", "i64 %last"
    with emit.function(name, *parameters, exported=True):
        for index, array in enumerate(ARRAYS):
            emit.emit(f"%{array} = load ptr, ptr {emit.pointer('%arrays', index, kind='ptr')}")
        for index, number in enumerate(NUMBERS):
            _emit_number_load(emit, number, index)
        if before is not None:
            before()
        with emit.loop("%last", "%first") as batch:
            yield batch


def _emit_number_load(emit: Emitter, name: str, index: int) -> None:
    loaded = emit.value(f"load double, ptr {emit.pointer('%numbers', index, kind='double')}")
    convert = "fptrunc double" if emit.scalar == "float" else "bitcast double"
    emit.emit(f"%{name} = {convert} {loaded} to {emit.scalar}")


def pointer_arguments(*names: str) -> list[str]:
    """Format names as arguments of LLVM's pointer type: `ptr %name`."""
    return [f"ptr %{name}" for name in names]
