"""Targets of generated code, which are a processor and a floating-point type, and an emitter of
LLVM IR for them: functions, counted loops, vectors, and variables that loops change. It writes
text; llvmlite's own builder would make a Python object of every instruction."""

import functools
import math
import platform
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from cohort.core import lazy

llvm = lazy("llvmlite.binding")

SIZES = {"float": 4, "double": 8}
CACHE_LINE = 64  # bytes


@dataclass(frozen=True)
class Target:
    """A processor, by LLVM's name and list of features, and how code uses its vector registers."""

    cpu: str
    features: str
    scalar: str
    lanes: int
    registers: int

    @property
    def size(self) -> int:
        """Bytes of a number in the target's precision."""
        return SIZES[self.scalar]

    @property
    def dtype(self) -> np.dtype:
        """numpy's type of a number."""
        return np.dtype(f"f{self.size}")

    @property
    def tile(self) -> int:
        """How many sums an inner loop keeps in registers, some of which are left for factors."""
        return self.registers * 4 // 5


@functools.cache
def host(scalar: str) -> Target:
    """The processor of this machine, computing in `scalar` (float or double)."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        width, registers = 64, 32
    elif features.get("avx"):
        width, registers = 32, 16
    else:
        width, registers = 16, 32  # the vectors of arm64
    lanes = width // SIZES[scalar]
    return Target(llvm.get_host_cpu_name(), features.flatten(), scalar, lanes, registers)


@functools.cache
def has_fma() -> bool:
    """Whether the processor has fused multiply-add instructions. Without them LLVM calls a function
    of the C library for each number."""
    is_arm = platform.machine().lower() in ("arm64", "aarch64")
    return is_arm or bool(llvm.get_host_cpu_features().get("fma"))


class Arena:
    """Allocates arrays in one block of memory, counted in numbers, each on a cache line."""

    def __init__(self, target: Target):
        self.used, self._line = 0, CACHE_LINE // target.size

    def allocate(self, count: int) -> int:
        """Reserve room for `count` numbers and return the offset of the first."""
        start = self.used
        self.used += -(-count // self._line) * self._line
        return start


Index = int | str
"""An integer: known now, or the name of one that is known when the code runs."""
Offset = Index | tuple[Index, int]
"""A number of elements, or an index and its stride."""

ZERO = "zeroinitializer"


@dataclass(frozen=True)
class Ranges:
    """`count` ranges of equal `size`, one after the other from `start` on."""

    start: int
    count: int
    size: int

    @property
    def starts(self) -> range:
        """Where each range begins."""
        return range(self.start, self.start + self.count * self.size, self.size)


def split(total: int, max_size: int) -> list[Ranges]:
    """Split range(total) into as few ranges of at most `max_size` as possible: a group of equal
    ranges, or two whose sizes differ by 1."""
    if not total:
        return []
    parts = -(-total // max_size)
    size, larger = divmod(total, parts)
    ranges = Ranges(0, larger, size + 1), Ranges(larger * (size + 1), parts - larger, size)
    return [part for part in ranges if part.count]


def chunks(total: int, size: int) -> list[Ranges]:
    """Split range(total) into ranges of a size, and a last one with what is left."""
    whole = total // size
    ranges = Ranges(0, whole, size), Ranges(whole * size, 1, total % size)
    return [part for part in ranges if part.count and part.size]


class Emitter:
    """Appends instructions to the function that is being emitted; methods that compute return the
    name of their result, like `%v7`. Vectors fill the target's lanes; offsets are in elements."""

    def __init__(self, target: Target):
        self.target, self.lanes, self.scalar = target, target.lanes, target.scalar
        self.vector, self.mask = f"<{self.lanes} x {self.scalar}>", f"<{self.lanes} x i1>"
        self.suffix = f"v{self.lanes}f{8 * target.size}"
        self._functions: list[str] = []
        self._declared: set[str] = set()
        self._lines: list[str] = []
        self._allocas: list[str] = []
        self._block = "entry"
        self._names = 0

    # functions and loops

    @staticmethod
    def noalias(*names: str) -> list[str]:
        """Parameters of a function that are pointers to arrays which do not overlap."""
        return [f"ptr noalias %{name}" for name in names]

    @contextmanager
    def function(self, name: str, *parameters: str, exported: bool = False) -> Iterator[None]:
        """Emit a function that returns nothing; the `with` block emits its body."""
        self._lines, self._allocas, self._block = [], [], "entry"
        yield
        linkage = "" if exported else "internal "
        head = f"define {linkage}void @{name}({', '.join(parameters)}) #0 {{"
        self._functions += [head, "entry:", *self._allocas, *self._lines, "ret void", "}"]

    @contextmanager
    def loop(self, stop: Index, start: Index = 0, step: int = 1) -> Iterator[Index]:
        """Emit a loop over start, start + step, ... below stop, which runs at least once, around
        what the `with` block emits. A loop that is known to run only once is unrolled."""
        if isinstance(start, int) and isinstance(stop, int) and start + step >= stop:
            yield start
            return
        label, before = self._name()[1:], self._block
        self._open_block(label)
        self.emit(f"%{label}.i = phi i64 [ {start}, %{before} ], [ %{label}.next, %{label}.latch ]")
        yield f"%{label}.i"
        self._open_block(f"{label}.latch")
        self.emit(f"%{label}.next = add nuw nsw i64 %{label}.i, {step}")
        more = self.value(f"icmp slt i64 %{label}.next, {stop}")
        done = f"{label}.done"
        self._open_block(done, f"br i1 {more}, label %{label}, label %{done}")

    @contextmanager
    def parts(self, ranges: Ranges) -> Iterator[Index]:
        """Emit a loop over equal ranges; the `with` block gets where each begins."""
        with self.loop(ranges.count) as number:
            yield self.add(self.mul(number, ranges.size), ranges.start)

    @contextmanager
    def loops(self, *stops: Index | Ranges) -> Iterator[list[Index]]:
        """Emit nested loops from 0 below each stop, or over ranges, the last innermost."""
        loops = (self.parts(s) if isinstance(s, Ranges) else self.loop(s) for s in stops)
        with ExitStack() as stack:
            yield [stack.enter_context(loop) for loop in loops]

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Emit what the `with` block emits, to be skipped unless a condition holds."""
        label = self._name()[1:]
        done = f"{label}.done"
        self._open_block(label, f"br i1 {condition}, label %{label}, label %{done}")
        yield
        self._open_block(done)

    def call(self, function: str, *arguments: str) -> None:
        """Emit a call of a function of this module."""
        self.emit(f"call void @{function}({', '.join(arguments)})")

    def intrinsic(self, name: str, kind: str, *arguments: tuple[str, str]) -> str:
        """Emit a call of one of LLVM's functions; arguments are pairs of type and value."""
        types = ", ".join(type for type, _ in arguments)
        self._declared.add(f"declare {kind} @llvm.{name}({types})")
        listed = ", ".join(f"{type} {value}" for type, value in arguments)
        return self.value(f"call {kind} @llvm.{name}({listed})")

    # integers and pointers

    def add(self, left: Index, right: Index) -> Index:
        """Emit the sum of two integers, or calculate a known one."""
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if right == 0:
            return left
        return right if left == 0 else self.value(f"add nsw i64 {left}, {right}")

    def mul(self, left: Index, right: int) -> Index:
        """Emit the product of an integer and a known one, or calculate a known one."""
        if isinstance(left, int):
            return left * right
        return left if right == 1 else self.value(f"mul nsw i64 {left}, {right}")

    def pointer(self, base: str, *offsets: Offset, kind: str = "") -> str:
        """Emit a pointer moved by offsets: numbers, or pairs (index, stride), which go first."""
        fixed, kind = 0, kind or self.scalar
        for offset in offsets:
            index, stride = offset if isinstance(offset, tuple) else (offset, 1)
            if isinstance(index, int):
                fixed += index * stride
            else:
                moved = self.mul(index, stride)
                base = self.value(f"getelementptr {kind}, ptr {base}, i64 {moved}")
        return self.value(f"getelementptr {kind}, ptr {base}, i64 {fixed}") if fixed else base

    def load_int(self, base: str, *offsets: Offset) -> str:
        """Emit a load of one element of an array of 32-bit integers as a 64-bit integer."""
        number = self.value(f"load i32, ptr {self.pointer(base, *offsets, kind='i32')}")
        return self.value(f"sext i32 {number} to i64")

    def load_number(self, base: str, *offsets: Offset) -> str:
        """Emit a load of one number of an array, at the sum of the offsets."""
        return self.value(f"load {self.scalar}, ptr {self.pointer(base, *offsets)}")

    def store_number(self, value: str, base: str, *offsets: Offset) -> None:
        """Emit a store of one number in an array, at the sum of the offsets."""
        self.emit(f"store {self.scalar} {value}, ptr {self.pointer(base, *offsets)}")

    # vectors

    def load(self, base: str, *offsets: Offset, reload: bool = False) -> str:
        """Emit a load of an aligned vector of an array. `reload` keeps LLVM from holding it in a
        register for later, which the sums of an inner loop need."""
        kind = f"{'volatile ' if reload else ''}{self.vector}"
        return self.value(f"load {kind}, ptr {self.pointer(base, *offsets)}, align {self._width}")

    def store(self, value: str, base: str, *offsets: Offset) -> None:
        """Emit a store of a vector at an aligned address in an array."""
        address = self.pointer(base, *offsets)
        self.emit(f"store {self.vector} {value}, ptr {address}, align {self._width}")

    def load_anywhere(self, base: str, *offsets: Offset) -> str:
        """Emit a load of a vector from any address in an array."""
        address = self.pointer(base, *offsets)
        return self.value(f"load {self.vector}, ptr {address}, align {self.target.size}")

    def store_first(self, value: str, count: int, base: str, *offsets: Offset) -> None:
        """Emit stores of a vector's first lanes at any address in an array, in powers of two."""
        address, done = self.pointer(base, *offsets), 0
        while done < count:
            size = 1 << ((count - done).bit_length() - 1)
            part, kind = value, f"<{size} x {self.scalar}>"
            if size < self.lanes:
                lanes = ", ".join(f"i32 {done + lane}" for lane in range(size))
                vectors = f"{self.vector} {value}, {self.vector} poison"
                part = self.value(f"shufflevector {vectors}, <{size} x i32> <{lanes}>")
            goal = self.pointer(address, done)
            self.emit(f"store {kind} {part}, ptr {goal}, align {self.target.size}")
            done += size

    def broadcast(self, value: str, kind: str = "") -> str:
        """Emit a vector with this scalar in every lane."""
        kind = kind or self.scalar
        vector = f"<{self.lanes} x {kind}>"
        first = self.value(f"insertelement {vector} poison, {kind} {value}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.value(f"shufflevector {vector} {first}, {vector} poison, {zeros}")

    def constant(self, number: float) -> str:
        """A vector with this Python number in every lane, as LLVM text."""
        return f"splat ({self.scalar} {self.literal(number)})"

    def literal(self, number: float) -> str:
        """A Python number, rounded to the target's precision, as LLVM text."""
        if self.scalar == "float":
            number = struct.unpack("f", struct.pack("f", number))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"

    def op(self, name: str, left: str, right: str) -> str:
        """Emit an elementwise operation of two vectors, such as `fadd` or `fcmp olt`."""
        return self.value(f"{name} {self.vector} {left}, {right}")

    def fma(self, left: str, right: str, added: str) -> str:
        """Emit left * right + added of vectors, rounded once."""
        operands = ((self.vector, value) for value in (left, right, added))
        return self.intrinsic(f"fma.{self.suffix}", self.vector, *operands)

    def unary(self, name: str, value: str) -> str:
        """Emit one of LLVM's functions of each lane, such as `fabs`."""
        return self.intrinsic(f"{name}.{self.suffix}", self.vector, (self.vector, value))

    def select(self, mask: str, yes: str, no: str) -> str:
        """Emit `yes` in the lanes where the mask is set, `no` in the others."""
        return self.value(f"select {self.mask} {mask}, {self.vector} {yes}, {self.vector} {no}")

    def maximum(self, left: str, right: str) -> str:
        """Emit the lane-wise maximum of two vectors."""
        return self.select(self.op("fcmp ogt", left, right), left, right)

    def minimum(self, left: str, right: str) -> str:
        """Emit the lane-wise minimum of two vectors."""
        return self.select(self.op("fcmp olt", left, right), left, right)

    def relu(self, value: str) -> str:
        """Emit max(value, 0) in each lane. NaN stays NaN."""
        return self.select(self.op("fcmp olt", value, ZERO), ZERO, value)

    def where_positive(self, value: str, condition: str) -> str:
        """Emit `value` in the lanes where `condition` is positive, else 0."""
        return self.select(self.op("fcmp ogt", condition, ZERO), value, ZERO)

    def lane_sum(self, value: str) -> str:
        """Emit the sum over the lanes of a vector."""
        operands = f"{self.scalar} 0.0", f"{self.vector} {value}"
        name = f"llvm.vector.reduce.fadd.{self.suffix}"
        self._declared.add(f"declare {self.scalar} @{name}({self.scalar}, {self.vector})")
        return self.value(f"call reassoc {self.scalar} @{name}({', '.join(operands)})")

    def add_outer_product(
        self, sums: list[str], width: int, rows: Sequence[str], columns: Iterable[tuple[int, str]]
    ) -> None:
        """Emit each row's factor times each column's, added to the sums (row, column), whose names
        are replaced; `width` sums belong to each row. Columns come with their indices."""
        for column, factor in columns:
            for row, other in enumerate(rows):
                index = row * width + column
                sums[index] = self.fma(other, factor, sums[index])

    # variables

    def variables(self, values: Sequence[str], kind: str = "") -> "Variables":
        """Emit variables with initial values, by default vectors."""
        return Variables(self, values, kind or self.vector)

    def alloca(self, kind: str) -> str:
        """Emit room on the stack for a value; return its address."""
        name = self._name()
        self._allocas.append(f"{name} = alloca {kind}")
        return name

    # text

    def emit(self, line: str) -> None:
        """Append an instruction."""
        self._lines.append(line)

    def value(self, expression: str) -> str:
        """Append an instruction and return the name of its result."""
        name = self._name()
        self._lines.append(f"{name} = {expression}")
        return name

    def llvm_ir(self) -> str:
        """The module as LLVM IR."""
        width = f'"prefer-vector-width"="{8 * self._width}"'
        minimum = f'"min-legal-vector-width"="{8 * self._width}"'
        attributes = f"attributes #0 = {{ nounwind noinline {width} {minimum} }}"
        return "\n".join([*self._functions, *sorted(self._declared), attributes])

    @property
    def _width(self) -> int:
        """The size of a vector in bytes."""
        return self.target.size * self.lanes

    def _name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def _open_block(self, label: str, jump: str = "") -> None:
        self._lines += [jump or f"br label %{label}", f"{label}:"]
        self._block = label


class Variables:
    """Values that emitted loops change: room on the stack, which LLVM turns into registers."""

    def __init__(self, emitter: Emitter, values: Sequence[str], kind: str):
        self._emitter, self._kind = emitter, kind
        self._addresses = [emitter.alloca(kind) for _ in values]
        self.store(values)

    def load(self) -> list[str]:
        """Emit loads of the variables; return the names of their present values."""
        loads = [f"load {self._kind}, ptr {address}" for address in self._addresses]
        return list(map(self._emitter.value, loads))

    def store(self, values: Sequence[str]) -> None:
        """Emit stores of new values of all variables."""
        for address, value in zip(self._addresses, values, strict=True):
            self._emitter.emit(f"store {self._kind} {value}, ptr {address}")

    @contextmanager
    def update(self) -> Iterator[list[str]]:
        """Emit loads, yield the values as a list, and emit stores of what the list then holds."""
        values = self.load()
        yield values
        self.store(values)


FORMATS = {"float": ("i32", 23, 127, 7, -87), "double": ("i64", 52, 1023, 13, -708)}
"""Of each floating-point format: the integer of its size, the bits of its mantissa, the bias of its
exponent, the degree of the polynomial that approximates the exponential function in it, and the
number below which that would not be a normal number."""
# ln 2 in two parts; the first has so few digits that its products with exponents are exact.
LN2_HIGH = struct.unpack("f", struct.pack("f", round(math.log(2) * 4096) / 4096))[0]
LN2_LOW = math.log(2) - LN2_HIGH


def transposed(emit: Emitter, vectors: Sequence[str]) -> list[str]:
    """Emit the transpose of a square of vectors, as many as a vector has lanes."""
    rows = list(vectors)
    for step in _steps(emit):
        for row in range(emit.lanes):
            if not row & step:
                rows[row], rows[row + step] = _interleaved(emit, rows[row], rows[row + step], step)
    return rows


def lane_sums(emit: Emitter, vectors: Sequence[str]) -> str:
    """Emit one vector of the lane sums of each vector, at most as many as there are lanes."""
    rows = [*vectors, *[ZERO] * (emit.lanes - len(vectors))]
    for step in _steps(emit):
        pairs = zip(rows[::2], rows[1::2], strict=True)
        rows = [emit.op("fadd", *_interleaved(emit, left, right, step)) for left, right in pairs]
    return rows[0]


def reversed_lanes(emit: Emitter, value: str) -> str:
    """Emit a vector with its lanes in reverse order."""
    return _shuffled(emit, value, "poison", list(reversed(range(emit.lanes))))


def exponential(emit: Emitter, value: str) -> str:
    """Emit the exponential of numbers that are not positive: a power of two times a polynomial."""
    integer, mantissa, bias, degree, lowest = FORMATS[emit.scalar]
    integers, floor = f"<{emit.lanes} x {integer}>", emit.constant(lowest)
    value = emit.select(emit.op("fcmp olt", value, floor), floor, value)
    rounder = emit.constant(1.5 * 2**mantissa)  # adding it rounds to an integer
    power = emit.fma(value, emit.constant(1 / math.log(2)), rounder)
    power = emit.op("fsub", power, rounder)
    rest = emit.fma(power, emit.constant(-LN2_HIGH), value)
    rest = emit.fma(power, emit.constant(-LN2_LOW), rest)
    result = emit.constant(1 / math.factorial(degree))
    for order in range(degree - 1, -1, -1):
        result = emit.fma(result, rest, emit.constant(1 / math.factorial(order)))
    exponent = emit.value(f"fptosi {emit.vector} {power} to {integers}")
    exponent = emit.value(f"add {integers} {exponent}, splat ({integer} {bias})")
    bits = emit.value(f"shl {integers} {exponent}, splat ({integer} {mantissa})")
    return emit.op("fmul", result, emit.value(f"bitcast {integers} {bits} to {emit.vector}"))


def _steps(emit: Emitter) -> list[int]:
    return [1 << bit for bit in range(emit.lanes.bit_length() - 1)]


def _interleaved(emit: Emitter, left: str, right: str, step: int) -> tuple[str, str]:
    """Emit two vectors that exchange their blocks of `step` lanes off the diagonal."""
    lanes = range(emit.lanes)
    low = [lane + emit.lanes - step if lane & step else lane for lane in lanes]
    high = [lane + emit.lanes if lane & step else lane + step for lane in lanes]
    return _shuffled(emit, left, right, low), _shuffled(emit, left, right, high)


def _shuffled(emit: Emitter, left: str, right: str, lanes: Sequence[int]) -> str:
    indices = ", ".join(f"i32 {lane}" for lane in lanes)
    vectors = f"{emit.vector} {left}, {emit.vector} {right}"
    return emit.value(f"shufflevector {vectors}, <{emit.lanes} x i32> <{indices}>")
