"""`cohort verify`: train a finished cell again in a temporary place, and compare it bit by bit."""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.commands.planning import add_config, load_plan
from cohort.commands.run import (
    add_until,
    check_cell_text,
    make_inputs,
    require_cell,
    training_command,
)
from cohort.commands.screen import paint
from cohort.core import user_files
from cohort.core.counts import counted
from cohort.core.errors import UserError
from cohort.core.lazy import lazy
from cohort.core.paths import RELEASED, state_folder
from cohort.core.sealed_json import write_sealed
from cohort.plan import Plan
from cohort.records.history import History
from cohort.records.record import Record, read
from cohort.results.release.folder import read_release, release_folders
from cohort.training.cell import Cell
from cohort.training.job.checkpoint_header import saved_header
from cohort.training.job.lease import CHECKPOINT

if TYPE_CHECKING:
    from cohort.training import trainers
    from cohort.training.job import checkpoint
    from cohort.training.job import device as devices
else:  # these import PyTorch
    devices = lazy("cohort.training.job.device")
    trainers = lazy("cohort.training.trainers")
    checkpoint = lazy("cohort.training.job.checkpoint")

POINTS, SHARE = 5.0, 0.1  # of an accuracy, and of a loss, where bits may differ
ANY_OF = "cohort verify --config studies={0}, or cohort verify --released --config studies={0}"
DECIDING_VERSIONS = ("torch", "numpy")  # the packages whose versions may change bits


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the cell, and where to stop."""
    add_config(parser)
    parser.add_argument(
        "cell",
        metavar="CELL",
        nargs="?",
        help="the path of a record, or a digest or the beginning of one "
        "(default: any finished cell of the studies that config/config.yaml lists)",
    )
    add_until(parser, "compare the first R rounds only, without the final weights")
    parser.add_argument(
        "--released",
        type=int,
        nargs="?",
        const=1,
        metavar="K",
        help="verify K released runs of these studies, drawn at random (1)",
    )


def run(options: argparse.Namespace) -> None:
    """Train cells again and print what differs. Raise UserError on unexplained differences."""
    if options.cell is not None:
        if options.released is not None:
            raise UserError("name a cell or give --released, not both")
        check_cell_text(options.cell, study=ANY_OF, item="cohort try --on {}")
    plan = load_plan(options)
    if options.released is not None:
        if options.released < 1:
            raise UserError(f"--released is {options.released}, but must be at least 1")
        for cell, record in draw_released_runs(plan, options.released):
            check_reproduced(plan, cell, record, options.until)
    else:
        cell = finished_cell(plan, options.cell)
        check_reproduced(plan, cell, read(cell.path), options.until)


def check_reproduced(plan: Plan, cell: Cell, before: Record, until: int | None) -> None:
    """Train a cell again, print what differs from its record, and raise UserError unless allowed.

    On the same kind of device, by the same trainer and with the same versions, all bits must be the
    same; else the last accuracies and losses must lie within their tolerance.
    """
    make_inputs(plan, cell)
    print(f"{cell.path}: training it again", flush=True)
    after = _train_again(cell, before, until)
    reasons = list(differing_conditions(before.header["provenance"], after.sessions))
    for reason in reasons:
        print(f"bits may differ: {reason}")
    changes = list(differences_of(before.history, after.history, until))
    if after.weights_sha256 not in ("", before.header["weights_sha256"]):
        changes.append("the final weights differ")
    for difference in changes:
        print(paint(difference, "" if reasons else "failed"))
    if changes and not reasons:
        raise UserError(f"{cell.path}: a second run is not the same, and nothing explains it")
    if far := list(beyond_tolerance(before.history, after.history, until)):
        raise UserError(f"{cell.path}: a second run ends elsewhere: {', '.join(far)}")
    if changes:
        print(f"the same within {POINTS:g} points of every accuracy and {SHARE:.0%} of every loss")
    else:
        compared = "metrics and cohorts" + ("" if until else ", and the final weights")
        rounds = until or len(before.history.cohorts)
        print(paint(f"the same to the last bit: {compared} of {counted(rounds, 'round')}", "done"))


def beyond_tolerance(before: History, after: History, until: int | None) -> Iterator[str]:
    """Describe accuracies and losses of which the means over the last tenth of the two runs, up to
    round `until`, differ by more than `POINTS` and `SHARE` allow."""
    last = until or max(len(before.cohorts), len(after.cohorts))
    for name in dict.fromkeys([*before.metrics, *after.metrics]):
        if not name.endswith(("_accuracy", "_loss")):
            continue
        first, second = (
            _final_mean(_values_until(history, name, last)) for history in (before, after)
        )
        allowed = POINTS / 100 if name.endswith("_accuracy") else SHARE * abs(first)
        if not abs(first - second) <= allowed and repr(first) != repr(second):
            yield f"{name} {first:.4g} before and {second:.4g} now"


def _final_mean(series: Mapping[int, float]) -> float:
    """The mean of the last tenth of a metric's values by round, NaN if there are none."""
    values = list(series.values())
    last = values[-max(1, len(values) // 10) :]
    return sum(last) / len(last) if last else nan


def draw_released_runs(plan: Plan, count: int) -> list[tuple[Cell, Record]]:
    """Draw some released runs of the listed studies at random, each with its cell."""
    folders = release_folders(plan.listed)
    released = (folders[study] for study in plan.listed if study in folders)
    records = [run for folder in released for run in read_release(folder)]
    planned = set(plan.digests(*plan.listed))
    runs = [run for run in records if run.header["digest"] in planned]
    if not runs:
        raise UserError(f"{RELEASED} has no run of the listed studies")
    drawn = random.sample(runs, min(count, len(runs)))
    return [(plan.cells[run.header["digest"]], run) for run in drawn]


def finished_cell(plan: Plan, text: str | None) -> Cell:
    """The cell of that name or, without one, any of the listed studies that has a record."""
    if text is None:
        cells = (plan.cells[digest] for digest in plan.digests(*plan.listed))
        done = [cell for cell in cells if Path(cell.path).exists()]
        if not done:
            raise UserError("no cell of the listed studies is done; name a record, or train first")
        return random.choice(done)
    return require_cell(plan, text)


@dataclass(frozen=True)
class SecondRun:
    """A cell's second run: history, sessions, and the hash of its final weights if it has any."""

    history: History
    sessions: list[dict[str, Any]]
    weights_sha256: str


def _train_again(cell: Cell, before: Record, until: int | None) -> SecondRun:
    """Train the cell in a temporary folder, by the trainer and kind of device of `before` where
    this machine has them."""
    provenance = before.header["provenance"]
    trainer = provenance["trainer"] if provenance["trainer"] in trainers.TRAINERS else "serial"
    on_cpu = trainer == "native" or provenance["devices"][-1] == devices.cpu_name()
    with tempfile.TemporaryDirectory(prefix="cohort-verify-") as folder:
        record = Path(folder, Path(cell.path).name)
        file = Path(folder, f"{cell.digest}.json")
        write_sealed(file, vars(replace(cell, path=str(record)).planned()), sync=False)
        options = {"trainer": trainer, "device": "cpu" if on_cpu else "auto"}
        if status := subprocess.run(training_command(file, until, options)).returncode:
            raise UserError(f"{cell.path}: training it again failed (exit status {status})")
        if record.exists():
            header, history = read(record).header, read(record).history
            return SecondRun(history, header["provenance"]["sessions"], header["weights_sha256"])
        state = state_folder(record)
        history = checkpoint.load_history(state / CHECKPOINT) or History()
        return SecondRun(history, saved_header(state)["sessions"], "")


def differing_conditions(
    provenance: dict[str, Any], sessions: list[dict[str, Any]]
) -> Iterator[str]:
    """Describe why the bits of a second run may differ from those of a record with this provenance:
    own files, devices, trainers, package versions."""
    for file in user_files.changed_files(user_files.module_versions(provenance)):
        yield f"the record was made by another {file}"
    for key, what in (("device", "on"), ("trainer", "by the trainer")):
        then, now = _names_in(provenance["sessions"], key), _names_in(sessions, key)
        if then != now:
            yield f"it was trained {what} {then}, and now {what} {now}"
    for package in DECIDING_VERSIONS:
        then, now = provenance["versions"].get(package, "of another version"), version(package)
        if then != now:
            yield f"it was trained with {package} {then}, and now with {now}"


def _names_in(sessions: list[dict[str, Any]], key: str) -> str:
    """The devices or the trainers of all sessions, joined to a text."""
    return " and ".join(dict.fromkeys(session[key] for session in sessions))


def differences_of(before: History, after: History, until: int | None) -> Iterator[str]:
    """Describe how two histories differ, up to round `until` if given. Times are not compared."""
    last = until or max(len(before.cohorts), len(after.cohorts))
    cohorts = [
        dict(enumerate(map(list, history.cohorts[:last]), start=1)) for history in (before, after)
    ]
    if rounds := _differing_rounds(*cohorts):
        yield f"cohorts differ in {len(rounds)} of {last} rounds, first in round {rounds[0]}"
    for name in dict.fromkeys([*before.metrics, *after.metrics]):
        first, second = (_values_until(history, name, last) for history in (before, after))
        rounds = [] if name.startswith("seconds") else _differing_rounds(first, second)
        if rounds:
            most = max(abs(first.get(round, nan) - second.get(round, nan)) for round in rounds)
            yield (
                f"{name} differs in {len(rounds)} of {len(first | second)} rounds, first in round "
                f"{rounds[0]}, by at most {most:.3g}"
            )


def _values_until(history: History, name: str, last: int) -> dict[int, float]:
    """The values of a metric by round, up to the round `last`."""
    return {round: value for round, value in history.metrics.get(name, []) if round <= last}


def _differing_rounds(first: Mapping[int, Any], second: Mapping[int, Any]) -> list[int]:
    """The rounds in which two series differ; NaN equals NaN."""
    return [
        round
        for round in sorted({**first, **second})
        if repr(first.get(round)) != repr(second.get(round))
    ]
