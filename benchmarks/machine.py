"""Hardware, software and revision of a measurement."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers import ROOT
from cohort.core.lazy import lazy

if TYPE_CHECKING:
    import psutil
else:
    psutil = lazy("psutil")

PACKAGES = ("torch", "numpy", "snakemake")


def cores() -> int:
    """The number of CPU cores available to this process."""
    return len(os.sched_getaffinity(0))


def has_avx512() -> bool:
    """Whether this machine's processor has AVX-512, for which generated code is widest."""
    return "avx512f" in Path("/proc/cpuinfo").read_text()


def describe_machine(command: Sequence[str], commit: str, load: float) -> str:
    """A paragraph for a report: date, command, commit, hardware, load and package versions."""
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by `{shlex.join(command)}` at commit "
        f"{commit} on {_processor()} {'with' if has_avx512() else 'without'} AVX-512, {cores()} cores, "
        f"{memory:.0f} GiB, {platform.system()} {platform.release()}; load at the start {load:.1f}. "
        f"Python {platform.python_version()}, {versions}."
    )


def _processor() -> str:
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.machine()


def commit(*revision: str) -> str:
    """The short hash of a revision; by default that of the working tree, marked if it is dirty."""
    described = revision or ("--dirty",)
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=10", *described]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"
    except FileNotFoundError:  # git is not installed
        return "unknown"
