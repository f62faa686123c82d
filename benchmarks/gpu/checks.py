"""The checks of tests/gpu, without pytest."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.gpu.piece import Report
from tests.gpu.checks import CHECKS, CUDA_ONLY


def measure(report: Report) -> None:
    """Run every check; on a CPU, name those that are skipped."""
    checks = CHECKS if report.is_trial else (*CHECKS, *CUDA_ONLY)
    report.steps = len(checks)
    for check in checks:
        name = check.__name__.replace("_", " ")
        with report.step(name), tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            try:
                answer = f"yes: {check(report.device, Path(folder))}"
            except Exception as error:
                answer = f"no: {type(error).__name__}"
                raise
            finally:
                report.add({"check": name, "holds": answer, "s": time.monotonic() - began})
    for check, reason in CUDA_ONLY.items() if report.is_trial else ():
        name = check.__name__.replace("_", " ")
        report.add({"check": name, "holds": f"skipped: {reason}", "s": None})
