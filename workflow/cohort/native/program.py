"""What generated code is asked for, the functions that it exports, and the step of stochastic
gradient descent. Both functions that are exported are called with two arrays, of pointers and of
numbers in float64, and with the range of batches to work on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cohort.native.augment import AugmentPlan
from cohort.native.emitter import ZERO, Emitter, Index, Offset, Target
from cohort.native.layers import Layer, Shape

ARRAYS = (
    *("memory", "weights", "gradients", "velocity", "anchor", "correction"),
    *("samples", "scale", "shift", "indices", "labels", "counts", "sums", "gaps", "distances"),
    *("logit_scale", "logit_shift", "outputs", "places", "rows", "instructions", "factors"),
)
STEP_ARRAYS = "weights", "gradients", "velocity", "anchor", "correction"
STEP_NUMBERS = "lr", "momentum", "weight_decay", "mu", "clip"
NUMBERS = (*STEP_NUMBERS, "factor")
TRAIN, PREDICT = "train", "predict"


@dataclass(frozen=True)
class StepOptions:
    """What a step does besides following the gradient, and whether logits are calibrated.
    `pulls_hard`: a step of the proximal term covers more than half of the way to its anchor."""

    momentum: bool = False
    weight_decay: bool = False
    proximal: bool = False
    pulls_hard: bool = False
    clips: bool = False
    corrects: bool = False
    calibrates: bool = False


@dataclass(frozen=True)
class CodeRequest:
    """A request for code that trains a network by batches of a size, or evaluates it if `options`
    is None. `kind` is LLVM's type of the samples' numbers, which `augment` changes if given."""

    layers: tuple[Layer, ...]
    shape: Shape
    batch: int
    target: Target
    kind: str
    options: StepOptions | None
    augment: AugmentPlan | None = None


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


def step_parameters(scalar: str) -> list[str]:
    """LLVM parameters of the emitted functions `step` and `move`."""
    arrays = Emitter.noalias(*STEP_ARRAYS, "distance")
    return arrays + [f"{scalar} %{name}" for name in STEP_NUMBERS]


def emit_step_call(emit: Emitter, name: str, distance: str) -> None:
    """Emit a call of `step` or `move`, which writes a distance."""
    arguments = [f"ptr %{array}" for array in STEP_ARRAYS] + [f"ptr {distance}"]
    emit.call(name, *arguments, *(f"{emit.scalar} %{number}" for number in STEP_NUMBERS))


def emit_step(emit: Emitter, count: int, options: StepOptions) -> None:
    """Emit the function `step`, which takes a step like torch.optim.SGD on `count` weights. The
    gradient of a proximal term is added before the gradient is clipped; weights move along a
    correction at last. `distance` gets the squared distance to the anchor before the step."""
    with emit.function("step", *step_parameters(emit.scalar)):
        if options.proximal:
            emit_distance(emit, count, "%distance")
        clipped = emit.broadcast(_clip_factor(emit, count, options)) if options.clips else ""
        with emit.loop(-(-count // emit.lanes)) as number:
            offset = number, emit.lanes
            weight = emit.load("%weights", offset)
            change = _proximal_gradient(emit, offset, weight, options)
            if options.clips:
                change = emit.op("fmul", change, clipped)
            if options.weight_decay:
                change = emit.fma(emit.broadcast("%weight_decay"), weight, change)
            if options.momentum:
                velocity = emit.load("%velocity", offset)
                change = emit.fma(emit.broadcast("%momentum"), velocity, change)
                emit.store(change, "%velocity", offset)
            if options.corrects:
                change = emit.op("fsub", change, emit.load("%correction", offset))
            negative_rate = emit.op("fsub", ZERO, emit.broadcast("%lr"))
            emit.store(emit.fma(negative_rate, change, weight), "%weights", offset)


def _proximal_gradient(emit: Emitter, offset: Offset, weight: str, options: StepOptions) -> str:
    """Emit the gradient of the loss, with that of its proximal term if there is one."""
    gradient = emit.load("%gradients", offset)
    if not options.proximal:
        return gradient
    distance = emit.op("fsub", weight, emit.load("%anchor", offset))
    return emit.fma(emit.broadcast("%mu"), distance, gradient)


def emit_distance(emit: Emitter, count: int, goal: str) -> None:
    """Emit code that writes the squared distance of `count` weights to the anchor to `goal`."""

    def distance(offset: Offset) -> str:
        return emit.op("fsub", emit.load("%weights", offset), emit.load("%anchor", offset))

    emit.store_number(_square_sum(emit, count, distance), goal)


def _square_sum(emit: Emitter, count: int, vector: Callable[[Offset], str]) -> str:
    """Emit the sum of squares of `count` numbers, of which `vector` emits those at an offset."""
    square = emit.variables([ZERO])
    with emit.loop(-(-count // emit.lanes)) as number, square.update() as values:
        value = vector((number, emit.lanes))
        values[0] = emit.fma(value, value, values[0])
    return emit.lane_sum(*square.load())


def emit_move(emit: Emitter, count: int, options: StepOptions) -> None:
    """Emit the body of the function `move`, which completes a step: it pulls weights towards the
    anchor of a proximal term and shifts them along a correction, and writes the squared distance
    left to it into `distance`. Weights were moved along gradients before, at `rate_before_move`."""
    square = emit.variables([ZERO])
    rate = emit.broadcast("%lr")
    with emit.loop(-(-count // emit.lanes)) as number, square.update() as values:
        offset = number, emit.lanes
        weight = emit.load("%weights", offset)
        if options.proximal:
            anchor = emit.load("%anchor", offset)
            pull = emit.op("fmul", rate, emit.broadcast("%mu"))
            weight = emit.fma(pull, emit.op("fsub", anchor, weight), weight)
        if options.corrects:
            weight = emit.fma(rate, emit.load("%correction", offset), weight)
        emit.store(weight, "%weights", offset)
        if options.proximal:
            distance = emit.op("fsub", weight, anchor)
            values[0] = emit.fma(distance, distance, values[0])
    if options.proximal:
        emit.store_number(emit.lane_sum(*square.load()), "%distance")


def rate_before_move(emit: Emitter, options: StepOptions) -> str:
    """Emit the learning rate of a gradient's step before `move`, whose pull to the anchor then
    takes the share lr mu of that step back."""
    if not options.proximal:
        return "%lr"
    scalar = emit.scalar
    decay_factor = emit.value(f"fmul {scalar} %lr, %mu")
    decay_factor = emit.value(f"fsub {scalar} {emit.literal(1)}, {decay_factor}")
    return emit.value(f"fdiv {scalar} %lr, {decay_factor}")


def _clip_factor(emit: Emitter, count: int, options: StepOptions) -> str:
    """Emit the factor by which torch's clip_grad_norm_ multiplies the gradient."""

    def gradient(offset: Offset) -> str:
        return _proximal_gradient(emit, offset, emit.load("%weights", offset), options)

    scalar, total = emit.scalar, _square_sum(emit, count, gradient)
    norm = emit.intrinsic(f"sqrt.f{8 * emit.target.size}", scalar, (scalar, total))
    norm = emit.value(f"fadd {scalar} {norm}, {emit.literal(1e-6)}")
    factor = emit.value(f"fdiv {scalar} %clip, {norm}")
    is_above = emit.value(f"fcmp ogt {scalar} {factor}, {emit.literal(1)}")
    return emit.value(f"select i1 {is_above}, {scalar} {emit.literal(1)}, {scalar} {factor}")
