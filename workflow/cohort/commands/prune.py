"""`cohort prune`: list, or delete, what no study has any more, whatever the scale and the seeds."""

import argparse
import contextlib
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cohort.commands.shared import add_overrides, load_plan
from cohort.core.paths import CELLS, SHARDS, digest_in, records_in
from cohort.pipeline.driver import lock_directory
from cohort.plan import Plan, all_studies
from cohort.records.record import read
from cohort.settings import DIGEST, PlannedFile, digest_of, shard_identity
from cohort.training.cell import Cell
from cohort.training.job.lease import is_held

NAME = re.compile(rf"(?:clients\d+-)?seed(\d+)-({DIGEST})")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --config, --delete and --restored."""
    add_overrides(parser)
    parser.add_argument("--delete", action="store_true", help="delete them")
    text = "only the records that were restored from releases"
    parser.add_argument("--restored", action="store_true", help=text)


def run(options: argparse.Namespace) -> None:
    """Print, and with --delete delete, what no study has at any scale, or what was restored."""
    command = "cohort prune"
    if options.restored:
        command += " --restored"
        paths = [path for path in records_in(CELLS) if "restored" in read(path).header]
    else:
        names = {"studies": all_studies(), "only": ""}
        plans = [load_plan(options, scale=key, **names) for key in load_plan(options).scales]
        paths = _unused_paths(PlannedFiles(plans))
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


class PlannedFiles:
    """The paths of the records and shards that plans have, or would have with further seeds:
    `--seeds 5` trains more than studies name."""

    def __init__(self, plans: Iterable[Plan]):
        self._by_folder: defaultdict[Path, dict[Path, Cell | PlannedFile]] = defaultdict(dict)
        for plan in plans:
            every: list[Cell | PlannedFile] = [*plan.cells.values(), *plan.shards.values()]
            for planned in every:
                path = Path(planned.path)
                self._by_folder[path.parent][path] = planned
        self._identities = cache(self._find_identities)

    def __contains__(self, path: Path) -> bool:
        if path in self._by_folder.get(path.parent, {}):
            return True
        name = NAME.fullmatch(path.stem)
        return name is not None and any(
            digest_of(identity | {"seed": int(name[1])}, science) == name[2]
            for identity, science in self._identities(path.parent)
        )

    def _find_identities(self, folder: Path) -> list[tuple[dict[str, Any], Mapping[str, int]]]:
        """What the digests in a folder are made from, besides the seed, each once."""
        identities = {}
        for planned in self._by_folder.get(folder, {}).values():
            if isinstance(planned, Cell):
                identity = planned.identity()
            else:
                identity = shard_identity(planned.settings, digest_in(planned.inputs["data"]))
            identity = identity | {"seed": 0}
            identities[digest_of(identity, planned.science)] = identity, planned.science
        return list(identities.values())


def _unused_paths(planned: PlannedFiles) -> list[Path]:
    """Records and shards that are not planned, and state folders of unplanned or finished cells.

    The state of a cell that is being trained is never among them.
    """
    every = (path for folder in (CELLS, SHARDS) for path in Path(folder).rglob("*.h5"))
    files = {path for path in every if path.parent.suffix != ".state"}
    unused = [path for path in files if path not in planned]
    for state in Path(CELLS).rglob("*.state"):
        record = state.with_suffix(".h5")
        if (record in files or record not in planned) and not is_held(state):
            unused.append(state)
    return unused
