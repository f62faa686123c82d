"""`cohort verify`: train a finished cell again in a temporary place, and compare it bit by bit."""

import argparse
import random
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from math import nan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from cohort.commands import run as training
from cohort.commands.shared import add_config, load_plan, paint, positive
from cohort.core import paths, sealed_json, user_files
from cohort.core.errors import UserError
from cohort.core.lazy import lazy
from cohort.core.text import counted
from cohort.plan import Plan
from cohort.records.history import History
from cohort.records.record import Record, read
from cohort.results.release.folder import read_release, release_folders
from cohort.training.cell import Cell
from cohort.training.job.lease import CHECKPOINT, saved_header

if TYPE_CHECKING:
    from cohort.training.job import checkpoint, machine
    from cohort.training.job import train as job
else:  # these import PyTorch
    machine = lazy("cohort.training.job.machine")
    job = lazy("cohort.training.job.train")
    checkpoint = lazy("cohort.training.job.checkpoint")

POINTS, SHARE = 5.0, 0.1  # of an accuracy, and of a loss, where bits may differ
DECIDING_VERSIONS = ("torch", "numpy")  # the packages whose versions may change bits


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the cell or --released, and where to stop."""
    add_config(parser)
    which = parser.add_mutually_exclusive_group()
    text = "a record's path, or the beginning of a digest (default: any finished cell)"
    which.add_argument("cell", metavar="CELL", nargs="?", help=text)
    text = "verify K released runs of the listed studies, drawn at random (1)"
    which.add_argument("--released", type=positive, nargs="?", const=1, metavar="K", help=text)
    text = "compare the first R rounds only, without the final weights"
    parser.add_argument("--until", type=positive, metavar="R", help=text)


def verify_command(options: argparse.Namespace) -> None:
    """Train cells again and print what differs. Raise UserError on unexplained differences."""
    if options.cell is not None:
        training.check_cell_text(options.cell)
    plan = load_plan(options)
    listed = {digest: plan.cells[digest] for digest in plan.digests(*plan.listed)}
    if options.released is not None:
        folders = release_folders(plan.listed).values()
        records = [run for folder in folders for run in read_release(folder)]
        runs = [run for run in records if run.header["digest"] in listed]
        if not runs:
            raise UserError(f"{paths.RELEASED} has no run of the listed studies")
        for run in random.sample(runs, min(options.released, len(runs))):
            check_reproduced(plan, listed[run.header["digest"]], run, options.until)
        return
    if options.cell is not None:
        cell = training.require_cell(plan, options.cell)
    else:
        done = [cell for cell in listed.values() if Path(cell.path).exists()]
        if not done:
            raise UserError("no cell of the listed studies is done; name a record, or train first")
        cell = random.choice(done)
    check_reproduced(plan, cell, read(cell.path), options.until)


def check_reproduced(plan: Plan, cell: Cell, before: Record, until: int | None) -> None:
    """Train a cell again, print what differs from its record, and raise UserError unless allowed.

    On the same kind of device, by the same trainer and with the same versions, all bits must be the
    same; else the last accuracies and losses must lie within their tolerance.
    """
    training.make_inputs(plan, cell)
    print(f"{cell.path}: training it again", flush=True)
    history, sessions, weights_sha256 = _train_again(cell, before, until)
    reasons = list(differing_conditions(before.header["provenance"], sessions))
    for reason in reasons:
        print(f"bits may differ: {reason}")
    changes, far = compare(before.history, history, until)
    if weights_sha256 not in ("", before.header["weights_sha256"]):
        changes.append("the final weights differ")
    for difference in changes:
        print(paint(difference, "" if reasons else "failed"))
    if changes and not reasons:
        raise UserError(f"{cell.path}: a second run is not the same, and nothing explains it")
    if far:
        raise UserError(f"{cell.path}: a second run ends elsewhere: {', '.join(far)}")
    if changes:
        print(f"the same within {POINTS:g} points of every accuracy and {SHARE:.0%} of every loss")
    else:
        compared = "metrics and cohorts" + ("" if until else ", and the final weights")
        rounds = until or len(before.history.cohorts)
        print(paint(f"the same to the last bit: {compared} of {counted(rounds, 'round')}", "done"))


def _train_again(
    cell: Cell, before: Record, until: int | None
) -> tuple[History, list[dict[str, Any]], str]:
    """Train the cell in a temporary folder, by the trainer and kind of device of `before` where
    this machine has them; return the run's history, its sessions, and its weights' hash if any."""
    provenance = before.header["provenance"]
    trainer = provenance["trainer"] if provenance["trainer"] in job.TRAINERS else "serial"
    on_cpu = trainer == "native" or provenance["devices"][-1] == machine.cpu_name()
    with tempfile.TemporaryDirectory(prefix="cohort-verify-") as folder:
        record, file = Path(folder, Path(cell.path).name), Path(folder, f"{cell.digest}.json")
        sealed_json.write_sealed(file, vars(replace(cell, path=str(record)).planned()), sync=False)
        options = {"trainer": trainer, "device": "cpu" if on_cpu else "auto"}
        command = training.training_command(file, until, options)
        if status := subprocess.run(command).returncode:
            raise UserError(f"{cell.path}: training it again failed (exit status {status})")
        if record.exists():
            again = read(record)
            sessions = again.header["provenance"]["sessions"]
            return again.history, sessions, again.header["weights_sha256"]
        state = paths.state_folder(record)
        history = checkpoint.load_history(state / CHECKPOINT) or History()
        return history, saved_header(state)["sessions"], ""


def _each_once(sessions: list[dict[str, Any]], key: str) -> str:
    return " and ".join(dict.fromkeys(session[key] for session in sessions))


def differing_conditions(
    provenance: dict[str, Any], sessions: list[dict[str, Any]]
) -> Iterator[str]:
    """Describe why the bits of a second run may differ from those of a record with this provenance:
    own files, devices, trainers, package versions."""
    for file in user_files.changed_files(provenance):
        yield f"the record was made by another {file}"
    for key, what in (("device", "on"), ("trainer", "by the trainer")):
        then, now = (_each_once(made, key) for made in (provenance["sessions"], sessions))
        if then != now:
            yield f"it was trained {what} {then}, and now {what} {now}"
    for package in DECIDING_VERSIONS:
        then, now = provenance["versions"].get(package, "of another version"), version(package)
        if then != now:
            yield f"it was trained with {package} {then}, and now with {now}"


def compare(before: History, after: History, until: int | None) -> tuple[list[str], list[str]]:
    """Describe how two histories differ, up to round `until` if given, and which accuracies and
    losses differ by more than `POINTS` and `SHARE` allow in their means over the last tenth.

    Times are not compared, and NaN equals NaN.
    """
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
        most = max(abs(old - new) for _, old, new in differ)
        changes.append(f"{name} differs {where}, by at most {most:.3g}")
        _, old, new = map(fmean, zip(*rows[-max(1, len(rows) // 10) :], strict=True))
        allowed = POINTS / 100 if name.endswith("_accuracy") else SHARE * abs(old)
        is_bounded = name.endswith(("_accuracy", "_loss"))
        if is_bounded and not abs(old - new) <= allowed and repr(old) != repr(new):
            far.append(f"{name} {old:.4g} before and {new:.4g} now")
    return changes, far


def _by_round(history: History) -> dict[str, dict[int, Any]]:
    cohorts = {"cohorts": dict(enumerate(map(list, history.cohorts), start=1))}
    return cohorts | {name: dict(points) for name, points in history.metrics.items()}
