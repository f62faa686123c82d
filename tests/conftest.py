"""What every test may use: a project folder of its own, and a plan file for a small cell."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from cohort.core import user_files

ROOT = Path(__file__).resolve().parents[1]
of_config = user_files.folder
user_files.folder = lambda: of_config() if Path.cwd() != ROOT else ROOT / "tests/nothing"

if not Path("/dev/nvidiactl").exists():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported: kernels run without a GPU

# Without an answer from a cluster of this machine: SLURM's commands fail at once.
os.environ["SLURM_CONF"] = os.devnull

from benchmarks.project import PARTS  # noqa: E402 (imports the components)

settings.register_profile("cohort", deadline=None)  # machines are busy at times
settings.load_profile("cohort")
gc.disable()  # until all tests are collected: what their imports make stays for good


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m alone` and `-m "slow and ..."` import only the files that have such tests: importing all
    takes a quarter of a minute."""
    mark = config.option.markexpr.partition(" ")[0]
    if mark not in ("alone", "slow") or not collection_path.name.startswith("test_"):
        return None
    return f"mark.{mark}" not in collection_path.read_text() or None


@pytest.fixture(scope="module", autouse=True)
def trimmed() -> Iterator[None]:
    """Give back the memory of a file's networks, which the C library would keep for the next."""
    yield
    gc.collect()
    if sys.platform == "linux":
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project's config as the working directory, with links to its code."""
    folder = tmp_path / "project"
    for part in PARTS:
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        if part in ("config", "profiles", "resources/paper_values"):
            shutil.copytree(ROOT / part, folder / part)
        else:
            (folder / part).symlink_to(ROOT / part)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty folder the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def float32_again() -> Iterator[None]:
    """Set the process back to float32 after a test of other precisions."""
    from torch import device

    from cohort.training.job.machine import set_up

    yield
    set_up("float32", device("cpu"))
