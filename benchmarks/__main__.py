"""`python -m benchmarks [PART ...]`: measure, print and update docs/performance.md."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import training
from benchmarks.gpu import RESULTS
from benchmarks.gpu.results import read_entries
from benchmarks.gpu.results import section as gpu_section
from benchmarks.machine import commit, describe_machine, has_avx512
from benchmarks.peers import PEERS, ROOT, pins
from benchmarks.processes import Failed
from benchmarks.tables import Section, put_section
from benchmarks.workloads import W1, W2, W2B, W3

PARTS = {workload.name: workload for workload in (W1, W2, W2B, W3)}
GPU = "gpu"  # the section that is measured elsewhere, by `make gpu`
PAGE = ROOT / "docs" / "performance.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if any part failed."""
    parser = argparse.ArgumentParser(
        prog="benchmarks", description="Measure speed and memory against other frameworks."
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"one of {', '.join(PARTS)}; default: all; {GPU}: only show what `make gpu` measured",
    )
    parser.add_argument(
        "--tiny", action="store_true", help="a few small rounds to try the command; writes nothing"
    )
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.parts if name not in {*PARTS, GPU}]:
        parser.error(f"there is no part {unknown[0]}; choose from {', '.join(PARTS)}")
    command = ["make", "bench", *([f"ONLY={' '.join(options.parts)}"] if options.parts else [])]
    state, failures = commit(), []
    kind = "" if has_avx512() else " without AVX-512"  # its sections stand beside the others
    for name in [name for name in options.parts or PARTS if name != GPU]:
        load = os.getloadavg()[0]
        print(f"{name} ...", file=sys.stderr, flush=True)
        workload = PARTS[name].tiny() if options.tiny else PARTS[name]
        try:
            with tempfile.TemporaryDirectory() as folder:
                section = training.measure(workload, Path(folder) / "work")
        except (Failed, subprocess.CalledProcessError) as error:
            failures.append(f"{name}: {error}")
            continue
        peers = "; ".join(pins(peer) for peer in PEERS)
        section.title += kind
        section.text.insert(0, f"{describe_machine(command, state, load)} Peers: {peers}.")
        print(section.markdown(), flush=True)
        failures += section.failures
        if not options.tiny:
            _write(name + kind, section)
    if RESULTS.exists() and not options.tiny:
        _write(GPU, gpu_section(read_entries(RESULTS)))
    print(*failures, sep="\n", end="\n" if failures else "", file=sys.stderr)
    return int(bool(failures))


def _write(name: str, section: Section) -> None:
    PAGE.write_text(put_section(PAGE.read_text(), name, section.markdown()))


if __name__ == "__main__":
    sys.exit(main())
