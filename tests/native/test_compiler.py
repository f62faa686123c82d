"""The cache of compiled code saves time, and can do no harm."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch import nn

from cohort.core import files
from cohort.core.files import write_text
from cohort.native import compiler
from cohort.native.compiler import compile_function
from cohort.native.emitter import Emitter, host
from cohort.native.layers import layers_of

TARGET = host("double")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "cohort" / "native"


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record each compilation: the list grows by one entry per call of LLVM."""
    done: list[str] = []
    original = compiler._compile

    def compile(*arguments: object) -> bytes:
        done.append("compiled")
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(compiler, "_compile", compile)
    yield done


def call(number: int = 7) -> int:
    """The result of a function that writes a number to the first array."""
    emit = Emitter(TARGET)
    arguments = "ptr %arrays", "ptr %numbers", "i64 %first", "i64 %last"
    with emit.function("write", *arguments, exported=True):
        emit.emit(f"store i64 {number}, ptr %arrays")
    stored = ctypes.c_int64(0)
    compile_function(emit.llvm_ir(), emit.llvm_ir, "write", TARGET)(
        ctypes.addressof(stored), 0, 0, 0
    )
    return stored.value


def test_code_is_compiled_once(times: list[str], folder: Path):
    assert (call(), call(), call(8)) == (7, 7, 8)
    assert len(times) == 2 and len(list(folder.glob("*.o"))) == 2


def test_other_code_of_the_generator_is_compiled_anew(
    times: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A newer release asks for code by the same request, and must not get that of an older one."""
    monkeypatch.setattr(files, "__file__", str(tmp_path / "core" / "files.py"))
    layers = layers_of(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), (1, 2, 2))
    request = compiler.CodeRequest(layers, (1, 2, 2), 1, TARGET, "double", None)
    sources = [tmp_path / name for name in ("native/program.py", "data/augmentations.py")]
    for file in sources:
        write_text(file, "older")
    for _ in range(2):
        compiler._compiled.__wrapped__(request)
    for number, file in enumerate(sources, start=2):
        write_text(file, "newer")
        compiler._compiled.__wrapped__(request)
        assert len(times) == number


@pytest.mark.parametrize("damage", [b"", b"\0" * 50, None])
def test_a_damaged_entry_is_made_again(times: list[str], folder: Path, damage: bytes | None):
    call()
    (entry,) = folder.glob("*.o")
    good = entry.read_bytes()
    entry.write_bytes(good[:-1] + b"?" if damage is None else damage)
    assert call() == 7 and len(times) == 2
    assert entry.read_bytes() == good


def test_a_folder_that_cannot_be_written(times: list[str], folder: Path):
    folder.parent.mkdir(parents=True)
    folder.write_text("a file where the folder should be")
    assert call() == 7 and call() == 7 and len(times) == 2


def test_the_oldest_entries_go(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiler, "CACHED", 2)
    for number in range(4):
        call(number)
        for age, file in enumerate(
            sorted(folder.glob("*.o"), key=lambda file: -file.stat().st_mtime)
        ):
            os.utime(file, (1000 - age, 1000 - age))
    assert len(list(folder.glob("*.o"))) == 2


HOLES = """
import mmap
from cohort.native.compiler import compile_function
from cohort.native.emitter import Emitter
from cohort.native.emitter import host

emit = Emitter(host("double"))
arguments = "ptr %arrays", "ptr %numbers", "i64 %first", "i64 %last"
with emit.function("long", *arguments, exported=True):
    for place in range(4000):
        emit.store(emit.constant(place % 100 + 0.1), "%arrays", place * emit.lanes)
small = [mmap.mmap(-1, 4096 * pages) for pages in range(1, 40) for _ in range(60)]
holes = [mmap.mmap(-1, 4 * 4096) for _ in range(50)]
far = mmap.mmap(-1, 3 << 30, prot=mmap.PROT_READ)
for hole in holes[::2]:
    hole.close()
compile_function(emit.llvm_ir(), emit.llvm_ir, "long", host("double"))
print("linked")
"""


@pytest.mark.slow
def test_code_and_constants_are_near_each_other():
    """In a process whose only small holes of memory are gigabytes away from its large ones."""
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True)
    assert done.stdout == "linked\n", done.stderr
