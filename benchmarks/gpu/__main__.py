"""`python -m benchmarks.gpu [PIECE ...]`: run pieces one after another; without any, list them.

On a GPU each has a process of its own, because an error there can spoil the process that made it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu import PIECES, RESULTS
from benchmarks.gpu.results import add_failure, put_entry, read_entries
from benchmarks.peers import ROOT, environment

ALL = "all"
HANG_SECONDS = 110.0  # after its time, before a piece that hangs is stopped
HAS_GPU = "import sys, torch; sys.exit(not torch.cuda.is_available())"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if there is no GPU or anything failed."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.gpu",
        description="Check and measure what needs a GPU. Without a piece, list them.",
    )
    parser.add_argument("pieces", nargs="*", metavar="PIECE", help=f"{ALL}, or {', '.join(PIECES)}")
    parser.add_argument(
        "--device",
        choices=["cuda", "cpu"],
        default="cuda",
        help="cpu: only try the code, with little work",
    )
    parser.add_argument("--into", type=Path, help="the results file, whose other pieces are kept")
    parser.add_argument(
        "--seconds",
        type=float,
        default=420.0,
        help="within which a piece measures, repeating less (default: %(default)g)",
    )
    parser.add_argument("--commit", default="", help="the commit, where git cannot say it")
    options = parser.parse_args(arguments)
    if unknown := set(options.pieces) - {*PIECES, ALL}:
        parser.error(f"there is no piece {min(unknown)}; choose from {', '.join([*PIECES, ALL])}")
    if not options.pieces:
        print(*(f"{name:14}{title}" for name, (title, _) in PIECES.items()), sep="\n")
        return 0
    is_trial = options.device == "cpu"
    if not is_trial and subprocess.run([sys.executable, "-c", HAS_GPU]).returncode:
        print("there is no GPU here; `--device cpu` tries the pieces with little work")
        return 1
    names = list(PIECES) if ALL in options.pieces else list(dict.fromkeys(options.pieces))
    with tempfile.TemporaryDirectory() as folder:
        file = options.into or (Path(folder) / "trial.json" if is_trial else RESULTS)
        for name in names:
            _run(name, file.absolute(), options)
        entries = read_entries(file)
    failures = [f"{name}: {line}" for name in names for line in entries[name]["failures"]]
    print(*failures, f"results: {file}", sep="\n")
    return int(bool(failures))


def _run(name: str, file: Path, options: argparse.Namespace) -> None:
    """Measure a piece in a process, which is stopped if it hangs."""
    limit = options.seconds + HANG_SECONDS
    print(f"{name}: {PIECES[name][0]}, at most {limit:.0f} s", flush=True)
    put_entry(file, name, {"failures": []})
    command = [sys.executable, "-m", "benchmarks.gpu.piece", options.device, str(options.seconds)]
    command += [str(file), options.commit, name]
    process = subprocess.Popen(command, cwd=ROOT, env=environment(), start_new_session=True)
    try:
        if status := process.wait(limit):
            add_failure(file, name, f"the process ended with status {status}")
    except subprocess.TimeoutExpired:
        add_failure(file, name, f"stopped after {limit:.0f} s")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
