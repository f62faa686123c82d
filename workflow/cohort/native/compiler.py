"""Compiles generated code, and keeps the result in the user's cache folder. The cache only saves
time: where it cannot be read or written, or an entry is damaged, the code is compiled. An entry is
written aside and renamed, so processes can share the folder."""

import contextlib
import ctypes
import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cohort.core.errors import UserError
from cohort.core.files import atomic_write, cache_folder
from cohort.core.lazy import lazy
from cohort.native.target import Target

llvm = lazy("llvmlite.binding")

MOST = 200  # entries of the cache; the oldest go first
CHECKSUM = hashlib.sha256().digest_size
Function = Callable[[int, int, int, int], None]
"""Addresses of the arrays and of the numbers, first batch and last, which is left out."""


def compile_function(key: str, text: Callable[[], str], name: str, target: Target) -> Function:
    """Compile a module's function, or load its machine code from the user's cache; Python's lock is
    released while it runs. `text` makes the module's LLVM IR, if the cache has nothing under `key`,
    which must name all that the text depends on."""
    return _LinkedCode(_object_code(key, text, target), name, target).function


class _LinkedCode:
    """Machine code that is linked into this process; `function` keeps it alive."""

    def __init__(self, code: bytes, name: str, target: Target):
        # LLVM's older linker may place code and constants too far apart, and abort the process
        self.jit = llvm.create_lljit_compiler(_target_machine(target), use_jit_link=True)
        builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(name)
        self.library = builder.link(self.jit, name)
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        kind = ctypes.CFUNCTYPE(None, pointer, pointer, number, number)
        self._call = kind(self.library[name])

    def function(self, arrays: int, numbers: int, first: int, last: int) -> None:
        self._call(arrays, numbers, first, last)


def _object_code(key: str, text: Callable[[], str], target: Target) -> bytes:
    named = [key, target.cpu, target.features, str(llvm.llvm_version_info)]
    digest = hashlib.sha256("\0".join(named).encode()).hexdigest()
    try:
        file = cache_folder() / "native" / f"{digest}.o"
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
        with atomic_write(file, sync=False) as temporary:
            temporary.write_bytes(hashlib.sha256(code).digest() + code)
        _forget_oldest(file.parent)
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
    _initialize()
    return llvm.Target.from_default_triple().create_target_machine(
        target.cpu, target.features, opt=3, reloc="pic", codemodel="small"
    )


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _forget_oldest(folder: Path) -> None:
    """Delete the entries of the cache whose last use is longest ago, down to MOST."""
    ages = []
    for file in folder.glob("*.o"):
        with contextlib.suppress(OSError):  # another process may have deleted it
            ages.append((file.stat().st_mtime, file))
    for _, file in sorted(ages)[: max(0, len(ages) - MOST)]:
        file.unlink(missing_ok=True)
