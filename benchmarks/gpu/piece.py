"""`python -m benchmarks.gpu.piece DEVICE SECONDS FILE COMMIT NAME...`: run pieces in this process.

On a GPU each has a process of its own, because an error there can spoil the process that made it.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import torch

from benchmarks import machine
from benchmarks.gpu.report import Report


def main(device: str, seconds: str, file: str, commit: str, *pieces: str) -> None:
    """Measure the pieces; what fails in one is noted in its entry of the file."""
    for piece in pieces:
        commit = commit or machine.commit()
        report = Report(Path(file), piece, commit, torch.device(device), float(seconds))
        importlib.import_module(f"benchmarks.gpu.{piece}").measure(report)


if __name__ == "__main__":
    main(*sys.argv[1:])
