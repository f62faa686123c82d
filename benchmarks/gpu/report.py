"""What a piece writes: its rows as they come, so that a piece that dies leaves those it has."""

from __future__ import annotations

import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import torch

from benchmarks.gpu import results
from benchmarks.gpu.results import Row
from cohort.training.job.machine import device_name


@dataclass
class Report:
    """Writes the entry of one piece into the results file, and keeps the clock of its steps."""

    file: Path
    piece: str
    commit: str
    device: torch.device
    limit: float  # seconds within which the piece measures
    rows: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    steps: int = 0
    done: int = 0

    @property
    def is_trial(self) -> bool:
        """Whether the piece only tries the code, on a CPU with little work."""
        return self.device.type == "cpu"

    def plan(self, steps: int) -> None:
        """Announce how many steps the piece has."""
        self.steps = steps
        self._save()

    @contextmanager
    def step(self, what: str) -> Iterator[float]:
        """Announce a step of the piece and yield the time (of `time.monotonic`) at which it should
        end. An error in it is noted as a failure, and the piece goes on."""
        now = time.monotonic()
        taken, left = now - self.began, self.steps - self.done
        guess = f", about {taken / self.done * left:.0f} s to go" if self.done else ""
        spent = f"{taken:.0f} s of at most {self.limit:.0f}{guess}"
        self._say(f"{self.done + 1} of {self.steps}: {what} ({spent})")
        try:
            yield now + max(self.limit - taken, 0) / left
        except Exception as error:  # whatever it is, the other steps may work
            lines = str(error).strip().splitlines() or ["no message"]
            self.failures.append(f"{what}: {type(error).__name__}: {lines[0]}")
            self._say(f"   failed: {self.failures[-1]}")
            self._save()
        self.done += 1

    def add(self, row: Row) -> None:
        """Add a row to the piece's table, print it and save the table."""
        self.rows.append(row)
        self._say("   " + ", ".join(f"{key} {_short(value)}" for key, value in row.items()))
        self._save()

    def _say(self, text: str) -> None:
        print(f"{self.piece}: {text}", flush=True)

    def _save(self) -> None:
        taken = {"commit": self.commit, "seconds": round(time.monotonic() - self.began, 1)}
        content = {"rows": self.rows, "failures": self.failures}
        results.put_entry(self.file, self.piece, _machine(self.device) | taken | content)


def _machine(device: torch.device) -> dict[str, str]:
    """Device, versions and date of a measurement."""
    return {
        "device": device_name(device),
        "driver": _driver() if device.type == "cuda" else "none",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }


def _driver() -> str:
    """The version of NVIDIA's driver; empty without `nvidia-smi`."""
    if shutil.which("nvidia-smi") is None:
        return "unknown"
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.split()
    return lines[0] if lines else "unknown"


def _short(value: str | float | None) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
