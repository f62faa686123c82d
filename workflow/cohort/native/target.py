"""Targets of generated code: a processor and a floating-point type."""

import functools
import platform
from dataclasses import dataclass

import numpy as np

from cohort.core.lazy import lazy

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
