"""`python -m benchmarks.gpu [PIECE ...]`: run pieces one after another; without any, list them."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu import results
from benchmarks.gpu.pieces import HANG_SECONDS, LIMIT_SECONDS, PIECES, RESULTS
from benchmarks.peers import ROOT, environment

ALL = "all"
HAS_GPU = "import sys, torch; sys.exit(not torch.cuda.is_available())"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if there is no GPU or anything failed."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := set(options.pieces) - {*PIECES, ALL}:
        parser.error(f"there is no piece {min(unknown)}; choose from {', '.join([*PIECES, ALL])}")
    if not options.pieces:
        print(*(f"{name:14}{piece.title}" for name, piece in PIECES.items()), sep="\n")
    is_trial = options.device == "cpu"
    if not is_trial and subprocess.run([sys.executable, "-c", HAS_GPU]).returncode:
        print("there is no GPU here; `--device cpu` tries the pieces with little work")
        return 1
    if not options.pieces:
        return 0
    names = list(PIECES) if ALL in options.pieces else list(dict.fromkeys(options.pieces))
    with tempfile.TemporaryDirectory() as folder:
        file = options.into or (Path(folder) / "trial.json" if is_trial else RESULTS)
        for group in [names] if is_trial else [[name] for name in names]:
            _run(group, file.absolute(), options)
        failures = _failures(names, file)
    print(*failures, sep="\n", end="\n" if failures else "")
    if file.exists():
        print(f"the results are in {file}")
    return int(bool(failures))


def _failures(names: Sequence[str], file: Path) -> list[str]:
    """List the failures of these pieces in a results file, one line each."""
    entries = results.read_entries(file)
    return [f"{name}: {line}" for name in names for line in entries[name]["failures"]]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks.gpu",
        description="Check and measure what needs a GPU. Without a piece, list them.",
    )
    names = ", ".join(PIECES)
    parser.add_argument("pieces", nargs="*", metavar="PIECE", help=f"{ALL}, or some of {names}")
    parser.add_argument(
        "--device",
        choices=["cuda", "cpu"],
        default="cuda",
        help="cpu: only try the code, with little work",
    )
    parser.add_argument(
        "--into",
        type=Path,
        metavar="FILE",
        help=f"the results file, whose other pieces are kept; default: {RESULTS.relative_to(ROOT)}",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=LIMIT_SECONDS,
        help="within which a piece measures, repeating less (default: %(default)g)",
    )
    parser.add_argument("--commit", default="", help="the commit, where git cannot say it")
    return parser


def _run(names: Sequence[str], file: Path, options: argparse.Namespace) -> None:
    """Measure pieces in one process, which is stopped if it hangs."""
    for name in names:
        print(f"{name}: {PIECES[name].title}, at most {options.seconds:.0f} s", flush=True)
        results.put_entry(file, name, {"failures": []})
    command = [sys.executable, "-m", "benchmarks.gpu.piece", options.device, str(options.seconds)]
    process = subprocess.Popen(
        [*command, str(file), options.commit, *names],
        cwd=ROOT,
        env=environment(),
        start_new_session=True,
    )
    try:
        if status := process.wait(options.seconds + HANG_SECONDS):
            results.add_failure(file, names[-1], f"the process ended with status {status}")
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        results.add_failure(
            file, names[-1], f"stopped after {options.seconds + HANG_SECONDS:.0f} s"
        )


if __name__ == "__main__":
    sys.exit(main())
