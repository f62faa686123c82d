"""Finished runs as files: `cohort export` releases them, `cohort restore` turns released ones into
records, `cohort prune` deletes what no study has any more."""

import argparse
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from cohort.commands import shared
from cohort.core import UserError, counted, process, user_files
from cohort.core.paths import CELLS, RELEASED, SHARDS, digest_in, record_file
from cohort.core.shipped import shipped
from cohort.pipeline.driver import lock_directory
from cohort.plan import Plan, all_studies, load
from cohort.records.record import read
from cohort.results.release import describing
from cohort.results.release import folder as releases
from cohort.results.release.restoring import RestoreOutcome, restore
from cohort.settings import DIGEST, PlannedFile, digest_of, shard_identity
from cohort.training.cell import Cell
from cohort.training.job.lease import is_held

NAME = re.compile(rf"(?:clients\d+-)?seed(\d+)-({DIGEST})")
MAX_NAMED = 5  # runs by their digests
CODE = (".py", ".yaml", ".csv")  # the user's files that are handed in: what defines runs


def planned_files(plans: Iterable[Plan]) -> Callable[[Path], bool]:
    """Return a predicate: is this path a record or shards file of these plans, with any seed?
    `--seeds 5` trains more seeds than studies name."""
    planned: defaultdict[Path, dict[Path, Cell | PlannedFile]] = defaultdict(dict)  # by folder
    for plan in plans:
        items: Iterator[Cell | PlannedFile] = chain(plan.cells.values(), plan.shards.values())
        for item in items:
            path = Path(item.path)
            planned[path.parent][path] = item

    @cache
    def identities(folder: Path) -> list[tuple[dict[str, Any], Mapping[str, int]]]:
        """The distinct identities, apart from the seed, behind the digests in a folder."""
        by_digest = {}
        for item in planned[folder].values():
            if isinstance(item, Cell):
                identity = item.identity() | {"seed": 0}
            else:
                data = digest_in(item.inputs["data"])
                identity = shard_identity(item.settings, data) | {"seed": 0}
            by_digest[digest_of(identity, item.science)] = identity, item.science
        return list(by_digest.values())

    def is_planned(path: Path) -> bool:
        name = NAME.fullmatch(path.stem)
        return path in planned[path.parent] or any(
            name and digest_of(identity | {"seed": int(name[1])}, science) == name[2]
            for identity, science in identities(path.parent)
        )

    return is_planned


def prune_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_config(parser)
    parser.add_argument("--delete", action="store_true", help="delete what is listed")


def prune_command(options: argparse.Namespace) -> None:
    """Print, and with --delete delete, what no study has, whatever the scale and the seeds."""
    names, total = {"studies": all_studies(), "only": ""}, 0.0
    # A driver may be working on what studies had when it started.
    with lock_directory():
        scales = shared.load_plan(options).scales
        plans = (shared.load_plan(options, scale=scale, **names) for scale in scales)
        is_planned = planned_files(plans)
        all_paths = (path for folder in (CELLS, SHARDS) for path in Path(folder).rglob("*.h5"))
        files = {path for path in all_paths if path.parent.suffix != ".state"}
        paths = [path for path in files if not is_planned(path)]
        for state in Path(CELLS).rglob("*.state"):  # of unplanned or finished cells
            record = state.with_suffix(".h5")
            if (record in files or not is_planned(record)) and not is_held(state):
                paths.append(state)
        for path in sorted(paths):
            parts = [path] if path.is_file() else path.rglob("*")
            size = sum(file.stat().st_size for file in parts if file.is_file()) / 2**20
            total += size
            print(f"{size:10.2f} MB  {path}")
            if options.delete:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    verb = "deleted" if options.delete else "could be deleted (cohort prune --delete)"
    print(f"{total:10.2f} MB in {len(paths)} records, shards and checkpoints {verb}")


def export_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_studies(parser, default="none; my: yours, to hand in")
    text = f"output folder (default: {RELEASED})"
    parser.add_argument("--to", type=Path, default=Path(RELEASED), metavar="DIR", help=text)


def export_command(options: argparse.Namespace) -> None:
    """Write a release for each study and print a line on it. `my` stands for a hand-in: the user's
    studies, of each the runs that were trained here, and a copy of the user's files."""
    is_handin, user_folder = options.studies == [user_files.PACKAGE], user_files.folder()
    copied = options.to / user_files.PACKAGE
    if is_handin:
        options.studies = sorted(file.stem for file in user_folder.glob("studies/*.yaml"))
        if options.to == Path(RELEASED) or copied.exists():
            raise UserError("a hand-in needs a folder of its own: cohort export my --to DIR")
        if not options.studies:
            raise UserError(f"{user_folder} has no study; cohort try writes one")
    if not options.studies:
        raise UserError("name the study whose release to replace: cohort export demo")
    plan = shared.load_plan(options)
    exported = [_export(plan, study, options.to / study, is_handin) for study in plan.listed]
    if is_handin:
        if not any(exported):
            raise UserError(f"no run of {', '.join(plan.listed)} was trained here; use cohort try")
        for file in sorted(user_folder.rglob("*")):
            path = file.relative_to(user_folder)
            if file.suffix in CODE and "tests" not in path.parts:
                (copied / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copied / path)
                print(copied / path)


def _export(plan: Plan, study: str, folder: Path, is_handin: bool) -> int:
    """Release the runs that have records, and those that an earlier release in the folder holds and
    the study still has at some scale; for a hand-in, only runs (perhaps none) trained here with the
    user's files as they are now. Print a line, and return the number of runs."""
    earlier = shipped(folder / releases.MANIFEST)  # else the one that ships with Cohort
    released = releases.read_release(earlier.parent) if earlier.exists() else []
    runs = {}
    if released:  # keep those that the study has at some scale and number of seeds
        whole = plan.config | {"studies": study, "only": ""}
        is_planned = planned_files(load(whole | {"scale": scale}) for scale in plan.scales)
        for run in released:
            digest = run.header["digest"]
            if is_planned(Path(record_file(run.header["settings"], digest))):
                runs[digest] = run
    paths = (Path(plan.cells[digest].path) for digest in plan.digests(study))
    for run in (read(path) for path in paths if path.exists()):
        if "restored" not in run.header or not (is_handin or run.header["digest"] in runs):
            runs[run.header["digest"]] = run
    if is_handin:
        changed = (user_files.changed_files(run.header["provenance"]) for run in runs.values())
        if sentences := user_files.changed_sentences(changed):
            raise UserError(sentences[0])
    if not runs and not is_handin:
        raise UserError(f"{study} has no finished run at scale {plan.scale}; train it first")
    if not runs:
        return 0
    releases.write_release(folder, study, runs.values())
    describing.describe(folder, runs.values(), plan.datasets)
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    before, total = {run.header["digest"] for run in released}, {*plan.digests(study), *runs}
    added, dropped = len(runs.keys() - before), len(before - runs.keys())
    summary = f"{folder}: {len(runs)} of {counted(len(total), 'run')}, {added} of them new"
    lost = f"; {dropped} dropped that {study} no longer has" if dropped else ""
    replaced = sum(runs.get(run.header["digest"], run).header != run.header for run in released)
    lost += f"; {replaced} replaced by runs of this folder" if replaced else ""
    print(f"{summary}, {size:.2f} MB{lost}")
    return len(runs)


def restore_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_studies(parser, ("scale", "seeds"), "all that have a release")
    text = f"a folder with releases, one for each study (default: {RELEASED})"
    parser.add_argument("--from", dest="source", metavar="DIR", default=RELEASED, help=text)


def restore_command(options: argparse.Namespace) -> None:
    """Turn the released runs of these studies, or of all that a release exists of, into records,
    and print how many of each release were restored."""
    source = Path(options.source)
    ours = releases.release_folders(all_studies()) if source == Path(RELEASED) else {}
    files = [*source.glob(releases.MANIFEST), *sorted(source.glob(f"*/{releases.MANIFEST}"))]
    existing = list(ours.values()) or [file.parent for file in files]
    plan = shared.load_plan(options)
    for study in process.tracked(all_studies(), "planning"):
        plan.study(study)
    named = [ours.get(study, source / study) for study in dict.fromkeys(options.studies)]
    if not (folders := named or existing):
        raise UserError(f"{source} holds no release; cohort export writes one")
    with lock_directory():
        for folder in folders:
            print(*_outcome_lines(str(folder), restore(folder, str(folder), plan.cells)), sep="\n")


def _outcome_lines(address: str, outcome: RestoreOutcome) -> Iterator[str]:
    counts = {
        "restored": outcome.restored,
        "here already, bit by bit the same": outcome.present,
        "here already, not bit by bit the same (yours stay)": outcome.different,
        "that no study plans, not restored": outcome.unplanned,
        "that a process here is training, not restored": outcome.training,
    }
    texts = (f"{counted(len(runs), 'run')} {text}" for text, runs in counts.items() if runs)
    yield f"{address}: {'; '.join(texts)}"
    for reason, runs in (("other", outcome.different), ("not planned", outcome.unplanned)):
        if runs:
            more = ", ..." if len(runs) > MAX_NAMED else ""
            yield f"  {reason}: {', '.join([*runs][:MAX_NAMED])}{more}"
