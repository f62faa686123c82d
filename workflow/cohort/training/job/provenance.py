"""The provenance of a record: versions, commit, devices and sessions."""

from __future__ import annotations

import platform
import resource
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

import cohort
from cohort.core import user_files
from cohort.core.shipped import IS_INSTALLED
from cohort.training.job.machine import device_name


def describe_session(device: torch.device, trainer: str, from_round: int) -> dict[str, Any]:
    """Describe this process's work on a run, which begins or resumes at `from_round`."""
    versions = _user_module_versions()
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "from_round": from_round,
        "device": device_name(device),
        "trainer": trainer,
        **({"my": versions} if versions else {}),
    }


def provenance(
    device: torch.device, sessions: list[dict[str, Any]], package: str = ""
) -> dict[str, Any]:
    """The provenance for a record's header. `package` names a Python package that the procedure
    requires in addition to those of all runs."""
    # A file that was edited during the run counts as it was when the session began.
    user_modules = _user_module_versions() | sessions[-1].get("my", {})
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if device.type == "cuda":
        memory += torch.cuda.max_memory_allocated(device) / 2**20
    return {
        "versions": {"cohort": cohort.__version__, "python": platform.python_version()}
        | {name: version(name) for name in ("torch", "numpy", "h5py", package) if name},
        "commit": _commit(),
        **({"my": user_modules} if user_modules else {}),
        "trainer": sessions[-1]["trainer"],
        "devices": list(dict.fromkeys(item["device"] for item in sessions)),
        "sessions": sessions,
        "peak_memory_mb": memory,
    }


def _user_module_versions() -> dict[str, str]:
    """The SHA-256 of the user's modules that this process has imported, by module."""
    return {module: user_files.version_of(module) for module in user_files.loaded_modules()}


def _commit() -> str:
    """The commit of the package's repository, `unknown` for an installed package, whose environment
    may lie in another repository."""
    if IS_INSTALLED:
        return "unknown"
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    folder = Path(__file__).parent
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
