"""The checks of tests/gpu, without pytest."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.gpu.piece import Report
from tests.gpu.checks import CHECKS, CUDA_ONLY


def measure(report: Report) -> None:
    """Run every check; on a CPU, name those that are skipped."""
    report.steps = len(CHECKS) + (0 if report.is_trial else len(CUDA_ONLY))
    for check in (*CHECKS, *CUDA_ONLY):
        name, began = check.__name__.replace("_", " "), time.monotonic()
        if report.is_trial and check in CUDA_ONLY:
            report.add({"check": name, "holds": f"skipped: {CUDA_ONLY[check]}", "s": None})
            continue
        with report.step(name), tempfile.TemporaryDirectory() as folder:
            try:
                answer = f"yes: {check(report.device, Path(folder))}"
            except Exception as error:
                answer = f"no: {type(error).__name__}"
                raise
            finally:
                report.add({"check": name, "holds": answer, "s": time.monotonic() - began})
