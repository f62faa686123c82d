"""`python -m benchmarks.gpu.piece DEVICE SECONDS FILE COMMIT NAME`: run a piece in this process."""

from __future__ import annotations

import importlib
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import torch

from benchmarks import machine
from benchmarks.gpu.results import put_entry

LEAST = 3  # sweeps, however slow


@dataclass
class Report:
    """Writes the entry of one piece into the results file, row by row so that a piece that dies
    leaves those it has, and keeps the clock of its steps."""

    file: Path
    piece: str
    commit: str
    device: torch.device
    limit: float  # seconds within which the piece measures
    steps: int = 0
    done: int = 0
    rows: list[Mapping[str, str | float | None]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def is_trial(self) -> bool:
        """Whether the piece only tries the code, on a CPU with little work."""
        return self.device.type == "cpu"

    @contextmanager
    def step(self, title: str) -> Iterator[float]:
        """Yield the time (of `time.monotonic`) at which a step of the piece should end. An error in
        it is noted as a failure, and the piece goes on."""
        now = time.monotonic()
        left = max(self.limit - (now - self.began), 0)
        print(f"{self.piece}: {self.done + 1} of {self.steps}: {title}", flush=True)
        try:
            yield now + left / (self.steps - self.done)
        except Exception as error:  # whatever it is, the other steps may work
            lines = str(error).strip().splitlines() or ["no message"]
            self.failures.append(f"{title}: {type(error).__name__}: {lines[0]}")
            self._save()
        self.done += 1

    def add(self, row: Mapping[str, str | float | None]) -> None:
        """Add a row to the piece's table, print it and save the table."""
        self.rows.append(row)
        print("   " + ", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        self._save()

    def _save(self) -> None:
        entry = {
            "device": "a CPU" if self.is_trial else torch.cuda.get_device_name(self.device),
            "driver": "none" if self.is_trial else _driver(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "commit": self.commit,
            "rows": self.rows,
            "failures": self.failures,
        }
        put_entry(self.file, self.piece, entry)


def _driver() -> str:
    """The version of NVIDIA's driver."""
    if shutil.which("nvidia-smi") is None:
        return "unknown"
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[0]


def interleaved_seconds(
    functions: Mapping[str, Callable[[], object]], device: torch.device, most: int, deadline: float
) -> dict[str, list[float]]:
    """Time the functions in turn until the GPU has finished their work: the seconds of each call,
    at most `most` of each. A sweep more runs first, in which CUDA graphs are captured. After three
    sweeps none begins that would end after `deadline`, a time of time.monotonic."""
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for sweep in range(most + 1):
        began = time.monotonic()
        for name, function in functions.items():
            _finish(device)
            start = time.perf_counter()
            function()
            _finish(device)
            if sweep:
                taken[name].append(time.perf_counter() - start)
        now = time.monotonic()
        if sweep >= LEAST and now + (now - began) > deadline:
            break
    return taken


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main(device: str, seconds: str, file: str, commit: str, piece: str) -> None:
    """Measure a piece; what fails in it is noted in its entry of the file."""
    commit = commit or machine.commit()
    report = Report(Path(file), piece, commit, torch.device(device), float(seconds))
    importlib.import_module(f"benchmarks.gpu.{piece}").measure(report)


if __name__ == "__main__":
    main(*sys.argv[1:])
