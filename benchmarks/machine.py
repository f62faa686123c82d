"""On what, with what and when."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

from benchmarks.peers import PEERS, ROOT, pins

PACKAGES = ("torch", "numpy", "snakemake")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def described(arguments: Sequence[str], commit: str, load: float) -> str:
    """One paragraph: date, command, commit, machine, versions, how busy it was."""
    command = shlex.join(["make", "bench", *([f"ONLY={' '.join(arguments)}"] if arguments else [])])
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    peers = "; ".join(pins(peer) for peer in PEERS)
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by `{command}` at commit "
        f"{commit} on {_processor()}, {cores()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, {platform.system()} "
        f"{platform.release()}; load at the start {load:.1f}. Python {platform.python_version()}, {versions}. Peers: {peers}."
    )


def _processor() -> str:
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.machine()


def commit() -> str:
    """Which state of the project this is."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"
