"""`python -m benchmarks [PART ...]`: measure, print, and put the sections into docs/performance.md."""

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

from benchmarks import endurance, evaluation, growth, page, profile, start, training
from benchmarks.machine import commit, described
from benchmarks.peers import PEERS, ROOT, pins
from benchmarks.processes import Failed
from benchmarks.tables import Section
from benchmarks.workloads import W1, W2, W2A, W3, W4, Workload

Part = Callable[[Path], Section]
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "growth.png"


def parts(tiny: bool) -> Mapping[str, Part]:
    """What can be measured, by name."""

    def sized(workload: Workload) -> Workload:
        return workload.tiny() if tiny else workload

    rounds = {
        workload.name: partial(training.measure, sized(workload)) for workload in (W1, W2, W2A, W3)
    }
    return rounds | {
        "W4": partial(evaluation.measure, sized(W4)),
        "W5": partial(start.measure, 1 if tiny else 10),
        "W6": partial(growth.measure, tiny, None if tiny else PICTURE),
        "profile": partial(profile.measure, [sized(workload) for workload in (W1, W2, W3)]),
        "endurance": partial(endurance.measure, sized(W2), 20 if tiny else 500),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: how many things went wrong."""
    parser = argparse.ArgumentParser(
        prog="benchmarks", description="Speed and memory against a plain loop and against peers."
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"one of {', '.join(parts(False))}; all where none is named",
    )
    parser.add_argument(
        "--tiny",
        action="store_true",
        help="a few small rounds, to see that all of it works; nothing is written",
    )
    said = parser.parse_args(arguments)
    known = parts(said.tiny)
    if unknown := [name for name in said.parts if name not in known]:
        parser.error(f"there is no part {unknown[0]}; there are {', '.join(known)}")
    only = [f"ONLY={' '.join(said.parts)}"] if said.parts else []
    command = ["make", "bench", *only]
    peers = f"Peers: {'; '.join(pins(peer) for peer in PEERS)}."
    wrong: list[str] = []
    state = commit()
    for name in said.parts or known:
        started, load = time.monotonic(), os.getloadavg()[0]
        print(f"{name} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                section = known[name](Path(folder) / "work")
            except (Failed, subprocess.CalledProcessError) as error:
                wrong.append(f"{name}: {error}")
                continue
        section.text.insert(0, f"{described(command, state, load)} {peers}")
        print(section.markdown(), flush=True)
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        if not said.tiny:
            page.write(PAGE, name, section.markdown())
        wrong += section.failures
    for line in wrong:
        print(line, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
