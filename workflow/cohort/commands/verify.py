"""`cohort verify`: train finished cells, released or handed in ones, again and compare the bits."""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from math import isnan, nan
from pathlib import Path
from statistics import fmean
from typing import Any

from cohort.commands import run as training
from cohort.commands.shared import add_config, config_texts, load_plan, paint, positive
from cohort.core import UserError, counted, paths, sealed_json, shipped, user_files
from cohort.core.files import write_text
from cohort.plan import Plan, all_studies
from cohort.records.history import History
from cohort.records.record import Record, read
from cohort.results.collect import is_same
from cohort.results.release.folder import MANIFEST, read_digests, read_release, release_folders
from cohort.results.release.restoring import restore
from cohort.training.cell import Cell
from cohort.training.job import checkpoint, machine
from cohort.training.job import train as job
from cohort.training.job.lease import CHECKPOINT, saved_header

POINTS, SHARE = 5.0, 0.1  # of an accuracy, and of a loss, where bits may differ
DECIDING_VERSIONS = ("torch", "numpy")  # the packages whose versions may change bits


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser, "scale", "seeds")
    which = parser.add_mutually_exclusive_group()
    text = "a record's path, or the beginning of a digest (default: any of the listed studies)"
    which.add_argument("cell", metavar="CELL", nargs="?", help=text)
    text = "verify K released runs of the listed studies, drawn at random (1)"
    which.add_argument("--released", type=positive, nargs="?", const=1, metavar="K", help=text)
    text = "check a hand-in, which executes its code, and verify K of its runs, drawn at random"
    which.add_argument("--from", dest="handin", nargs=2, metavar=("DIR", "K"), help=text)
    text = "compare the first R rounds only, without the final weights"
    parser.add_argument("--until", type=positive, metavar="R", help=text)


def verify_command(options: argparse.Namespace) -> None:
    """Train cells again and print what differs. Raise UserError on unexplained differences."""
    if options.cell is not None:
        training.check_cell_text(options.cell)
    if options.handin is not None:
        verify_handin(options)
        return
    plan = load_plan(options)
    listed = {digest: plan.cells[digest] for digest in plan.digests(*plan.listed)}
    if options.released is not None:
        folders = release_folders(plan.listed).values()
        records = [run for folder in folders for run in read_release(folder)]
        runs = [run for run in records if run.header["digest"] in listed]
        if not runs:
            raise UserError(f"{paths.RELEASED} has no run of the listed studies")
        runs = random.sample(runs, min(options.released, len(runs)))
    elif options.cell is not None:
        runs = [read(training.require_cell(plan, options.cell).path)]
    else:
        done = [cell.path for cell in listed.values() if Path(cell.path).exists()]
        if not done:
            fix = "name a record, or add --config studies=STUDY"
            raise UserError(f"no cell of the listed studies is done; {fix}")
        runs = [read(random.choice(done))]
    for run in runs:
        check_reproduced(plan, plan.cells[run.header["digest"]], run, options.until)


def verify_handin(options: argparse.Namespace) -> None:
    """Train runs of a hand-in again by its own code, in a process whose folder `my` is the
    hand-in's. Before that raise UserError unless all its runs are valid."""
    source, count = Path(options.handin[0]).resolve(), options.handin[1]
    if not count.isdecimal() or not int(count):
        raise UserError(f"'{count}' is not a number of runs: cohort verify --from DIR 5")
    code, folders = source / user_files.PACKAGE, sorted(source.glob(f"*/{MANIFEST}"))
    if not folders or not code.is_dir():
        raise UserError(f"{source} is no hand-in: cohort export my --to DIR writes one")
    if user_files.folder().resolve() != code.resolve():
        sys.exit(_run_in_its_project(code, options))
    plan = load_plan(options, studies=[file.parent.name for file in folders])
    runs = _accepted_runs(plan, [file.parent for file in folders])
    sample = random.sample(runs, min(int(count), len(runs)))
    for run in sample:
        check_reproduced(plan, plan.cells[run.header["digest"]], run, options.until)
    print(f"{source}: {len(sample)} of {counted(len(runs), 'run')} trained again, as handed in")


def _run_in_its_project(code: Path, options: argparse.Namespace) -> int:
    """Verify a hand-in in a temporary project with its code, which Python imports with the package,
    and with the data and releases that are here; return the exit status."""
    files = (str(file.relative_to(code.parent)) for file in sorted(code.rglob("*.py")))
    print(f"{code.parent}: its code is executed: {', '.join(files) or 'none'}", flush=True)
    command = [sys.executable, "-m", "cohort", "verify"]
    command += ["--from", str(code.parent), options.handin[1]]
    command += ["--until", str(options.until)] if options.until else []
    command += ["--config", *texts] if (texts := config_texts(options)) else []
    resources = Path("resources").resolve()
    with tempfile.TemporaryDirectory(prefix="cohort-handin-") as project:
        write_text(Path(project, shipped.CONFIG_FILE), "{}\n")
        Path(project, user_files.PACKAGE).symlink_to(code)
        if resources.exists():
            Path(project, resources.name).symlink_to(resources)
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}  # the hand-in stays as it is
        return subprocess.run(command, cwd=project, env=environment).returncode


def _accepted_runs(plan: Plan, folders: Sequence[Path]) -> list[Record]:
    """Restore the releases of a hand-in next to ours; return its runs except those bit-identical to
    ours. Raise UserError for a run of no planned cell, one made with another version of the
    hand-in's files, or one that differs from ours of the same digest."""
    names = {digest: f"{path}: run {digest}" for path in folders for digest in read_digests(path)}
    if strangers := sorted(names.keys() - plan.cells.keys()):
        name = names[strangers[0]]
        raise UserError(f"{name} is of no study here: its settings or selector changed")
    cells, runs = {digest: plan.cells[digest] for digest in names}, dict[str, Record]()
    for ours in release_folders(all_studies()).values():
        restore(ours, str(ours), cells)
    for folder in folders:
        outcome = restore(folder, str(folder), cells)
        for digest, (here, handed_in) in outcome.different.items():
            check_same(f"{names[digest]}, compared with ours,", here, handed_in)
            runs[digest] = handed_in
        runs |= {digest: read(cells[digest].path) for digest in outcome.restored}
    for run in runs.values():
        if changed := user_files.changed_files(run.header["provenance"]):
            raise UserError(f"{names[run.header['digest']]} was made by another {changed[0]}")
    return list(runs.values())


def check_reproduced(plan: Plan, cell: Cell, before: Record, until: int | None) -> None:
    """Train a cell again and compare it with its record, as `check_same` does."""
    training.make_inputs(plan, cell)
    print(f"{cell.path}: training it again", flush=True)
    check_same(f"{cell.path}: a second run", before, _train_again(cell, before, until), until)


def check_same(name: str, before: Record, after: Record, until: int | None = None) -> None:
    """Print how two runs of a cell differ, and raise UserError with `name` unless that is allowed.
    On the same kind of device, by the same trainer and with the same versions, all bits must be the
    same; else the last accuracies and losses must lie within their tolerance."""
    then, now = before.header, after.header
    reasons = list(differing_conditions(then["provenance"], now["provenance"]))
    for reason in reasons:
        print(f"bits may differ: {reason}")
    changes, far = compare(before.history, after.history, until)
    if now["weights_sha256"] not in ("", then["weights_sha256"]):
        changes.append("the final weights differ")
    if not changes and after.clients and not is_same(before, after):
        changes.append("what is recorded of clients, classes or costs differs")
    for difference in changes:
        print(paint(difference, "" if reasons else "failed"))
    if changes and not reasons:
        raise UserError(f"{name} is not the same, and nothing explains it")
    if far:
        raise UserError(f"{name} ends elsewhere: {', '.join(far)}")
    if changes:
        print(f"the same within {POINTS:g} points of every accuracy and {SHARE:.0%} of every loss")
    else:
        compared = "metrics and cohorts" + ("" if until else ", and the final weights")
        rounds = counted(len(before.history.cohorts[:until]), "round")
        print(paint(f"the same to the last bit: {compared} of {rounds}", "done"))


def _train_again(cell: Cell, before: Record, until: int | None) -> Record:
    """Train the cell in a temporary folder, by the trainer and kind of device of `before` where
    this machine has them; return its record, or if `until` stops it, only the history."""
    provenance = before.header["provenance"]
    trainer = provenance["trainer"] if provenance["trainer"] in job.TRAINERS else "serial"
    on_cpu = trainer == "native" or provenance["devices"][-1] == machine.cpu_name()
    with tempfile.TemporaryDirectory(prefix="cohort-verify-") as folder:
        record, file = Path(folder, Path(cell.path).name), Path(folder, f"{cell.digest}.json")
        sealed_json.write_sealed(file, vars(replace(cell, path=str(record)).planned()), sync=False)
        options = {"trainer": trainer, "device": "cpu" if on_cpu else "auto"}
        if status := subprocess.run(training.training_command(file, until, options)).returncode:
            raise UserError(f"{cell.path}: training it again failed (exit status {status})")
        if record.exists():
            return read(record)
        state = paths.state_folder(record)
        provenance = {
            "sessions": saved_header(state)["sessions"],
            "versions": {package: version(package) for package in DECIDING_VERSIONS},
        }
        history = checkpoint.load_history(state / CHECKPOINT) or History()
        return Record({"provenance": provenance, "weights_sha256": ""}, history, {})


def differing_conditions(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Describe why the bits of two runs of a cell may differ, by their provenance."""
    for file in user_files.changed_files(before):
        yield f"the record was made by another {file}"
    then, now = map(_conditions, (before, after))
    for condition in then:
        if then[condition] != now[condition]:
            yield f"its {condition} was {then[condition]}, and is now {now[condition]}"


def _conditions(provenance: Mapping[str, Any]) -> dict[str, str]:
    recorded = provenance["versions"]
    versions = {name: recorded.get(name, "another version") for name in DECIDING_VERSIONS}
    for key in ("device", "trainer"):
        sessions = (str(session.get(key)) for session in provenance["sessions"])
        versions[key] = " and ".join(dict.fromkeys(sessions))
    return versions


def compare(before: History, after: History, until: int | None) -> tuple[list[str], list[str]]:
    """Describe how two histories differ, up to round `until` if given, and which accuracies and
    losses lie too far apart in their last tenth. Times are not compared, and NaN equals NaN."""
    changes, far = [], []
    first, second = map(_by_round, (before, after))
    for name in first | second:
        was, now = first.get(name, {}), second.get(name, {})
        rounds = [round for round in sorted(was | now) if until is None or round <= until]
        rows = [(round, was.get(round, nan), now.get(round, nan)) for round in rounds]
        differ = [row for row in rows if repr(row[1]) != repr(row[2])]
        if not differ or name.startswith("seconds"):
            continue
        where = f"in {len(differ)} of {len(rows)} rounds, first in round {differ[0][0]}"
        if name == "cohorts":
            changes.append(f"cohorts differ {where}")
            continue
        gaps = [abs(old - new) for _, old, new in differ if not isnan(old - new)]
        changes.append(f"{name} differs {where}{f', by at most {max(gaps):.3g}' if gaps else ''}")
        _, old, new = map(fmean, zip(*rows[-max(1, len(rows) // 10) :], strict=True))
        allowed = POINTS / 100 if name.endswith("_accuracy") else SHARE * abs(old)
        is_bounded = name.endswith(("_accuracy", "_loss"))
        if is_bounded and not abs(old - new) <= allowed and repr(old) != repr(new):
            far.append(f"{name} {old:.4g} before and {new:.4g} now")
    return changes, far


def _by_round(history: History) -> dict[str, dict[int, Any]]:
    cohorts = {"cohorts": dict(enumerate(map(list, history.cohorts), start=1))}
    return cohorts | {name: dict(points) for name, points in history.metrics.items()}
