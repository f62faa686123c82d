"""Files are written atomically, what the system refuses is explained, and locks are held by one process at a time."""

import contextlib
import errno
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from cohort.core.errors import FileAccessError, UserError, explain_errors, os_error_sentence
from cohort.core.files import atomic_write, clamp_times, is_locked, lock, try_lock, write_text
from cohort.core.hdf5 import new_hdf5
from tests.conftest import ROOT
from tests.workflow.conftest import wait_for

GROWS = "the file grows beyond the size limit; raise it (ulimit -f) and start again"


@contextlib.contextmanager
def limited(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: the one refusal of room that needs no rights."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def hdf5(path: Path, parts: int, size: int) -> None:
    with new_hdf5(path) as file:
        for number in range(parts):
            file[f"part{number}"] = np.arange(size) + number
        file.attrs["parts"] = parts


def copy(path: Path) -> None:
    with atomic_write(path) as temporary:
        shutil.copyfile(subprocess.__file__, temporary)


WRITERS = {
    "a copy": lambda path: copy(path),
    "text": lambda path: write_text(path, "x" * 100_000),
    "one large HDF5 array": lambda path: hdf5(path, 1, 50_000),
    "many small HDF5 arrays": lambda path: hdf5(path, 300, 100),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("limit", [0, 1000, 20_000])
def test_without_room_only_the_previous_file_remains(writer: str, limit: int, tmp_path: Path):
    path = tmp_path / "a.h5"
    path.write_bytes(b"of before")
    with limited(limit), pytest.raises(FileAccessError) as caught:
        WRITERS[writer](path)
    assert str(caught.value) == f"{path}: {GROWS}"
    assert path.read_bytes() == b"of before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_in_place_of_a_folder(tmp_path: Path):
    (tmp_path / "results").write_text("a file")
    for path in (tmp_path / "results/a.txt", tmp_path / "results/cells/a.txt"):
        with pytest.raises(
            FileAccessError, match="results: a file stands where a folder is needed; move it away"
        ):
            write_text(path, "text")
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(FileAccessError, match=r"/a\.txt: a folder stands where a file is needed"):
        write_text(tmp_path / "a.txt", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "results"]


def test_files_dated_in_the_future_get_the_current_time(tmp_path: Path):
    early, late = tmp_path / "early", tmp_path / "late"
    for file, written in ((early, 1e9), (late, 4e9)):
        file.touch()
        os.utime(file, (written, written))
    begin = time.time()
    clamp_times([str(early), str(late), str(tmp_path / "gone")])
    assert early.stat().st_mtime == 1e9
    assert begin - 1 <= late.stat().st_mtime <= time.time() + 1


@pytest.mark.parametrize(
    "code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM]
)
def test_every_refusal_names_the_file_and_a_fix(code: int):
    text = str(os_error_sentence(OSError(code, "words of the system", "a/b"), "c"))
    assert text.startswith("a/b: ") and "; " in text and "start again" in text
    assert str(os_error_sentence(OSError(code, "words of the system"), "c")).startswith("c: ")


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(errno.ENOENT, "no", "a"), ConnectionResetError(errno.ECONNRESET, "no")],
)
def test_other_errors_pass_unchanged(error: Exception):
    with pytest.raises(type(error)) as caught, explain_errors("a"):
        raise error
    assert caught.value is error
    with pytest.raises(UserError, match=r"^the first words$"), explain_errors("a"):
        raise UserError("the first words")


HOLDER = """
import sys
from pathlib import Path
from cohort.core.files import lock

path, message = Path(sys.argv[1]), Path(sys.argv[2])
with lock(path, waiting=lambda: message.write_text("waiting")):
    message.write_text("locked")
    if sys.stdin.read() == "delete":
        path.unlink()
"""
Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a process that holds the lock until its input ends; its state is in the named file."""
    started: list[subprocess.Popen[str]] = []
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}

    def start(name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock"), str(tmp_path / name)]
        started.append(subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, text=True))
        wait_for(lambda: (tmp_path / name).exists() and (tmp_path / name).read_text())
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_lock_is_held_by_one_and_freed_when_its_holder_dies(start: Start, tmp_path: Path):
    path = tmp_path / "lock"
    assert not is_locked(path) and not path.exists()
    with lock(path):
        assert is_locked(path) and try_lock(path) is None
    assert not is_locked(path)
    holder = start("first")
    assert is_locked(path) and try_lock(path) is None
    holder.kill()
    holder.wait()
    file = try_lock(path)
    assert file is not None and is_locked(path)
    file.close()


def test_a_locked_file_that_another_node_has_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """On NFS its status is an error: its successor is locked."""
    stale = iter([OSError(errno.ESTALE, "Stale file handle")])
    status = os.fstat

    def fstat(number: int) -> os.stat_result:
        if error := next(stale, None):
            raise error
        return status(number)

    monkeypatch.setattr(os, "fstat", fstat)
    with lock(tmp_path / "lock"):
        assert is_locked(tmp_path / "lock")


def test_who_waited_locks_the_file_that_is_there(start: Start, tmp_path: Path):
    """The first holder deletes the file: its successor must not hold a lock that nobody can see."""
    first, second = start("first"), start("second")
    assert (tmp_path / "first").read_text() == "locked"
    assert (tmp_path / "second").read_text() == "waiting"
    first.communicate("delete")
    wait_for(lambda: (tmp_path / "second").read_text() == "locked")
    assert is_locked(tmp_path / "lock")
    second.communicate()
    assert not is_locked(tmp_path / "lock")
