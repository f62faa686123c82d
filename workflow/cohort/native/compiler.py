"""Compiled code of a network with the memory that it works in: local training, and outputs.

The user's cache folder keeps the code, which only saves time: where it cannot be read or written,
or an entry is damaged, code is compiled. Entries are renamed into place, so processes can share it.
"""

import contextlib
import ctypes
import functools
import hashlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cohort.core import UserError, files, lazy
from cohort.native.emitter import CACHE_LINE, Target
from cohort.native.lanes_program import LanesProgram
from cohort.native.program import ARRAYS, NUMBERS, PREDICT, TRAIN, CodeRequest
from cohort.native.single_program import SingleSampleProgram, is_single_sample

llvm = lazy("llvmlite.binding")

EVALUATED = 64  # samples that are evaluated at once, a batch that stays in the nearer caches
BATCHES = 32  # evaluated in one call, which no signal interrupts
CACHED = 200  # entries of the cache; the oldest go first
CHECKSUM = hashlib.sha256().digest_size
Function = Callable[[int, int, int, int], None]
"""Compiled code, called with the addresses of the arrays and of the numbers, and with the first
batch and the one behind the last."""


@dataclass(frozen=True)
class Inputs:
    """Samples in memory, one after another, and how their numbers are standardized: times `scale`
    plus `shift`, which are given for each number of a sample."""

    samples: np.ndarray
    scale: np.ndarray
    shift: np.ndarray

    @property
    def is_bytes(self) -> bool:
        """Whether the numbers are bytes, not those of the type that the code computes in."""
        return self.samples.dtype == np.uint8


class Batches:
    """Batches as native code reads them: `indices` of samples (batch, width), of which the first
    `counts` (batch) of each row are `used` (batch, width). The others repeat the first sample."""

    def __init__(self, indices: np.ndarray, counts: np.ndarray, width: int):
        self.counts = counts.astype(np.int32)
        self.used = np.arange(width) < counts[:, None]
        starts = np.cumsum(counts) - counts
        self.indices = np.repeat(indices[starts].astype(np.int32)[:, None], width, axis=1)
        self.indices[self.used] = indices

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Put values (sample of any batch) into rows (batch, width), with 0 where no sample is."""
        rows = np.zeros(self.used.shape, dtype=np.int32)
        rows[self.used] = values
        return rows


@functools.lru_cache(maxsize=32)
def _compiled(request: CodeRequest) -> tuple[LanesProgram | SingleSampleProgram, Function]:
    """The program for a request and the function compiled from it, made once in a process. The
    cache's key is the request and the generator's own code."""
    generator = files.code_hash("native/**/*", "data/augmentations.py")
    program = (SingleSampleProgram if is_single_sample(request) else LanesProgram)(request)
    key, name = f"{request}\0{generator}", PREDICT if request.options is None else TRAIN
    return program, compile_function(key, program.llvm_ir, name, request.target)


class Kernel:
    """Runs a network's compiled code in memory of its own; two threads need a kernel each."""

    def __init__(self, request: CodeRequest):
        self.dtype, self.classes = request.target.dtype, request.layers[-1].outer
        self.program, self._function = _compiled(request)
        program = self.program
        self.arrays = dict.fromkeys(ARRAYS, np.empty(0, self.dtype))
        self.arrays["memory"] = zeros(program.memory, self.dtype)
        self.arrays["places"] = np.arange(program.width, dtype=np.int32)
        for name in ("weights", "gradients", "velocity", "anchor", "correction"):
            needed = program.weight_count if request.options or name == "weights" else 0
            self.arrays[name] = zeros(needed + program.slack, self.dtype)
        self.calibrate()

    def calibrate(self, scale: ArrayLike | None = None, shift: ArrayLike | None = None) -> None:
        """Set the scale of each class's logit without its bias, and its shift."""
        for name, values, default in (("logit_scale", scale, 1), ("logit_shift", shift, 0)):
            values = np.full(self.classes, default) if values is None else values
            self.arrays[name] = np.ascontiguousarray(values, self.dtype)

    def fill(self, name: str, values: np.ndarray) -> None:
        """Set the array of this name, which has a number for each weight."""
        padding = 0 if name == "correction" else self.program.padding
        self.arrays[name][: self.program.weight_count] = padding
        self.arrays[name][self.program.order] = values

    def view(self, name: str) -> np.ndarray:
        """The array of this name, with a number for each weight in the network's order."""
        return self.arrays[name][self.program.order]

    def train(
        self,
        inputs: Inputs,
        labels: np.ndarray,
        batches: Batches,
        numbers: dict[str, float],
        augmented: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Take a step on each batch and return the mean loss of each (batch). `labels` are those of
        all samples of the batches, one batch after another; `augmented` are the instructions and
        factors of their augmentation, as `augment.to_instructions` gives them."""
        shape = batches.used.shape
        sums, gaps = (zeros(math.prod(shape), self.dtype).reshape(shape) for _ in range(2))
        distances = zeros(shape[0] + 1, self.dtype)  # before each step, after the last
        self.arrays |= {"sums": sums, "gaps": gaps, "distances": distances}
        self.arrays["labels"] = batches.spread(labels)
        if augmented is not None:
            self.arrays["rows"] = batches.spread(np.arange(len(labels)))
            self.arrays["instructions"], self.arrays["factors"] = augmented
        self._call(inputs, batches, numbers, slice(None))
        losses = np.log(sums, where=batches.used, out=np.zeros_like(sums)) - gaps
        means: np.ndarray = losses.sum(axis=1, where=batches.used) / batches.counts
        return means + (numbers["mu"] / 2 * distances[: shape[0]]).astype(self.dtype)

    def outputs(self, inputs: Inputs, indices: np.ndarray) -> np.ndarray:
        """The network's outputs (sample, class) for the samples with these indices."""
        width = self.program.width
        counts = np.full(-(-len(indices) // EVALUATED), EVALUATED)
        counts[-1:] = len(indices) - EVALUATED * (len(counts) - 1)
        batches = Batches(indices, counts, width)
        outputs = zeros(len(counts) * self.classes * width, self.dtype)
        self.arrays["outputs"] = outputs
        for first in range(0, len(counts), BATCHES):
            self._call(inputs, batches, {}, slice(first, first + BATCHES))
        return outputs.reshape(len(counts), self.classes, width).transpose(0, 2, 1)[batches.used]

    def _call(self, inputs: Inputs, batches: Batches, rates: dict[str, float], part: slice) -> None:
        first, last, _ = part.indices(len(batches.counts))
        if first == last:
            return
        of_call = {"samples": inputs.samples, "scale": inputs.scale, "shift": inputs.shift}
        of_call |= {"indices": batches.indices, "counts": batches.counts}
        arrays = self.arrays | of_call
        addresses = np.array([arrays[name].ctypes.data for name in ARRAYS], dtype=np.uintp)
        numbers = np.array([rates.get(name, 0.0) for name in NUMBERS], dtype=np.float64)
        self._function(addresses.ctypes.data, numbers.ctypes.data, first, last)


def zeros(count: int, dtype: np.dtype) -> np.ndarray:
    """Allocate zeros, on whole cache lines of their own."""
    size = -(-count * dtype.itemsize // CACHE_LINE) * CACHE_LINE
    raw = np.zeros(size + CACHE_LINE, dtype=np.uint8)  # NumPy asks for huge pages
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + size].view(dtype)[:count]


def compile_function(key: str, text: Callable[[], str], name: str, target: Target) -> Function:
    """Compile a module's function, or load its machine code from the user's cache; Python's lock is
    released while it runs. `text` makes the module's LLVM IR, if the cache has nothing under `key`,
    which must name all that the text depends on."""
    code = _object_code(key, text, target)
    # LLVM's older linker may place code and constants too far apart, and abort the process
    jit = llvm.create_lljit_compiler(_target_machine(target), use_jit_link=True)
    library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(name).link(jit, name)
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    function = ctypes.CFUNCTYPE(None, pointer, pointer, number, number)(library[name])
    vars(function)["code"] = library, jit  # which live as long as the function
    return function


def _object_code(key: str, text: Callable[[], str], target: Target) -> bytes:
    named = [key, target.cpu, target.features, str(llvm.llvm_version_info)]
    digest = hashlib.sha256("\0".join(named).encode()).hexdigest()
    try:
        file = files.cache_folder() / "native" / f"{digest}.o"
    except RuntimeError:  # the user has no home directory
        return _compile(text(), target)
    with contextlib.suppress(OSError):
        entry = file.read_bytes()
        code = entry[CHECKSUM:]
        if hashlib.sha256(code).digest() == entry[:CHECKSUM]:
            with contextlib.suppress(OSError):
                os.utime(file)
            return code
    code = _compile(text(), target)
    with contextlib.suppress(OSError, UserError):
        with files.atomic_write(file, sync=False) as temporary:
            temporary.write_bytes(hashlib.sha256(code).digest() + code)
        for oldest in sorted(file.parent.glob("*.o"), key=os.path.getmtime)[:-CACHED]:
            oldest.unlink(missing_ok=True)
    return code


def _compile(text: str, target: Target) -> bytes:
    machine = _target_machine(target)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    # the code is vectorized and unrolled already
    tuning.loop_vectorization = tuning.slp_vectorization = False
    tuning.loop_unrolling = tuning.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


def _target_machine(target: Target) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        target.cpu, target.features, opt=3, reloc="pic", codemodel="small"
    )
