"""Hardware, software and revision of a measurement."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers import ROOT

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
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    names = re.findall(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by `{shlex.join(command)}` at commit "
        f"{commit} on {(names or [platform.machine()])[0]} {'with' if has_avx512() else 'without'} "
        f"AVX-512, {cores()} cores, {memory:.0f} GiB, {platform.system()} {platform.release()}; load "
        f"at the start {load:.1f}. Python {platform.python_version()}, {versions}."
    )


def commit(*revision: str) -> str:
    """The short hash of a revision; by default that of the working tree, marked if it is dirty."""
    described = revision or ("--dirty",)
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=10", *described]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"
    except FileNotFoundError:  # git is not installed
        return "unknown"
