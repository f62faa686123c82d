"""What no study names any more."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from cohort.pipeline.driver import lock_directory
from cohort.plan import Plan
from cohort.training.job.lease import is_held, state_folder


def prune(plans: Iterable[Plan], *, delete: bool) -> None:
    """List, and delete if wanted, records and shards that no study names at any scale, and states left by such cells or finished ones."""
    lock = (
        lock_directory() if delete else None
    )  # a driver may have planned what the studies no longer name
    found = {path: size_of(path) for path in sorted(unnamed(plans))}
    for path, size in found.items():
        print(f"{size / 2**20:10.2f} MB  {path}")
        if delete:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if lock is not None:
        lock.close()
    verb = "deleted" if delete else "could be deleted (cohort prune --delete)"
    print(
        f"{sum(found.values()) / 2**20:10.2f} MB in {len(found)} records, shards and checkpoints {verb}"
    )


def unnamed(plans: Iterable[Plan]) -> list[Path]:
    """Records, shards and state folders that can go; never those of a cell that is being trained."""
    named = {
        Path(planned.path)
        for plan in plans
        for things in (plan.cells, plan.shards)
        for planned in things.values()
    }
    live = {state_folder(path) for path in named if not path.exists()}
    files = {
        path
        for folder in ("cells", "shards")
        for path in Path("results", folder).rglob("*.h5")
        if path.parent.suffix != ".state"
    }
    states = {path for path in Path("results/cells").rglob("*.state") if not is_held(path)}
    return [*(files - named), *(states - live)]


def size_of(path: Path) -> int:
    """Bytes on disk, of a file or of all files in a folder."""
    return sum(
        file.stat().st_size
        for file in ([path] if path.is_file() else path.rglob("*"))
        if file.is_file()
    )
