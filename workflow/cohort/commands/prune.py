"""`cohort prune`: list, or delete, what no study has any more, whatever the scale and the seeds."""

from __future__ import annotations

import argparse
import contextlib
import shutil
from collections.abc import Container
from pathlib import Path

from cohort.commands.planning import add_overrides, load_plan
from cohort.core.paths import CELLS, SHARDS, records_in
from cohort.pipeline.driver import lock_directory
from cohort.plan import all_studies
from cohort.plan.any_seed import FilesOfAnySeed
from cohort.records.record import read
from cohort.training.job.lease import is_held


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --config, --delete and --restored."""
    add_overrides(parser)
    parser.add_argument("--delete", action="store_true", help="delete them")
    parser.add_argument(
        "--restored", action="store_true", help="only the records that were restored from releases"
    )


def run(options: argparse.Namespace) -> None:
    """Print, and with --delete delete, what no study has at any scale, or what was restored."""
    command = "cohort prune"
    if options.restored:
        command += " --restored"
        paths = [path for path in records_in(CELLS) if "restored" in read(path).header]
    else:
        scales, studies = load_plan(options).scales, all_studies()
        plans = [load_plan(options, scale=scale, studies=studies, only="") for scale in scales]
        paths = unused_paths(FilesOfAnySeed(plans))
    total = 0.0
    # A driver may be working on what studies had when it started.
    with lock_directory() if options.delete else contextlib.nullcontext():
        for path in sorted(paths):
            files = [path] if path.is_file() else path.rglob("*")
            size = sum(file.stat().st_size for file in files if file.is_file()) / 2**20
            total += size
            print(f"{size:10.2f} MB  {path}")
            if options.delete:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    verb = "deleted" if options.delete else f"could be deleted ({command} --delete)"
    print(f"{total:10.2f} MB in {len(paths)} records, shards and checkpoints {verb}")


def unused_paths(planned: Container[Path]) -> list[Path]:
    """Records and shards that are not planned, and state folders of unplanned or finished cells.

    The state of a cell that is being trained is never among them.
    """
    files = {
        path
        for folder in (CELLS, SHARDS)
        for path in Path(folder).rglob("*.h5")
        if path.parent.suffix != ".state"
    }
    unused = [path for path in files if path not in planned]
    for state in Path(CELLS).rglob("*.state"):
        record = state.with_suffix(".h5")
        if (record in files or record not in planned) and not is_held(state):
            unused.append(state)
    return unused
