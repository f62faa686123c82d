"""`python -m benchmarks [PART ...]`: measure, print and update docs/performance.md."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks import (
    endurance,
    estimates,
    evaluation,
    growth,
    page,
    profile,
    readme,
    start,
    training,
)
from benchmarks.gpu import results
from benchmarks.gpu.pieces import RESULTS
from benchmarks.gpu.section import section as gpu_section
from benchmarks.machine import commit, describe_machine, has_avx512
from benchmarks.peers import PEERS, ROOT, pins
from benchmarks.processes import Failed
from benchmarks.tables import Section
from benchmarks.workloads import W1, W2, W2A, W2B, W3, W4, Workload

Part = Callable[[Path], Section]
PAGE = ROOT / "docs" / "performance.md"
GPU = "gpu"  # the section that is measured elsewhere, by `make gpu`
PICTURE = ROOT / "docs" / "images" / "growth.png"


def parts(tiny: bool) -> Mapping[str, Part]:
    """The measurable parts of the benchmark by name; with `tiny`, scaled down to run in seconds."""

    def sized(workload: Workload) -> Workload:
        return workload.tiny() if tiny else workload

    rounds = {
        workload.name: partial(training.measure, sized(workload))
        for workload in (W1, W2, W2A, W2B, W3)
    }
    return rounds | {
        "W4": partial(evaluation.measure, sized(W4)),
        "W5": partial(start.measure, 1 if tiny else 10),
        "W6": partial(growth.measure, tiny, PICTURE if has_avx512() and not tiny else None),
        "profile": partial(profile.measure, [sized(workload) for workload in (W1, W2, W2A, W3)]),
        "estimates": partial(estimates.measure, estimates.FEW if tiny else estimates.KINDS),
        "endurance": partial(endurance.measure, sized(W2), 20 if tiny else 500),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks", description="Measure speed and memory against other frameworks."
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"one of {', '.join(parts(False))}; default: all; {GPU}: only show what `make gpu` "
        "measured",
    )
    parser.add_argument(
        "--tiny",
        action="store_true",
        help="a few small rounds to check that everything works; writes nothing",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if any part failed."""
    parser = _parser()
    options = parser.parse_args(arguments)
    parts_by_name = parts(options.tiny)
    if unknown := [name for name in options.parts if name not in {*parts_by_name, GPU}]:
        parser.error(f"there is no part {unknown[0]}; choose from {', '.join(parts_by_name)}")
    command = ["make", "bench", *([f"ONLY={' '.join(options.parts)}"] if options.parts else [])]
    state, failures = commit(), []
    kind = "" if has_avx512() else " without AVX-512"  # its sections stand beside the others
    for name in [name for name in options.parts or parts_by_name if name != GPU]:
        started, load = time.monotonic(), os.getloadavg()[0]
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            with tempfile.TemporaryDirectory() as folder:
                section = parts_by_name[name](Path(folder) / "work")
        except (Failed, subprocess.CalledProcessError) as error:
            failures.append(f"{name}: {error}")
            continue
        peers = "; ".join(pins(peer) for peer in PEERS)
        section.title += kind
        section.text.insert(0, f"{describe_machine(command, state, load)} Peers: {peers}.")
        print(section.markdown(), flush=True)
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        if not options.tiny:
            page.write_section(PAGE, name + kind, section.markdown())
        failures += section.failures
    if RESULTS.exists() and not options.tiny:
        page.write_section(PAGE, GPU, gpu_section(results.read_entries(RESULTS)).markdown())
    if not options.tiny:
        readme.write_readme()
    print(*failures, sep="\n", end="\n" if failures else "", file=sys.stderr)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
