"""`cohort run`: train one cell without Snakemake."""

import argparse
import contextlib
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.commands.shared import add_config, load_plan, positive
from cohort.core import UserError, lazy
from cohort.core.paths import digest_in, plan_file, relative_path, state_folder
from cohort.core.process import freeze_objects
from cohort.settings import options_of, write_plan
from cohort.training.cell import Cell, read_cell
from cohort.training.job import lease

if TYPE_CHECKING:
    from cohort import plan as planning
    from cohort.data import download as downloading
    from cohort.data import prepare as preparing
    from cohort.partition import deal as dealing
    from cohort.training.job import train as job
else:  # a cell imports only what it uses
    planning, dealing = lazy("cohort.plan"), lazy("cohort.partition.deal")
    downloading, preparing = lazy("cohort.data.download"), lazy("cohort.data.prepare")
    job = lazy("cohort.training.job.train")


def run_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser, "scale", "seeds")
    text = "the path of a record, a digest or the beginning of one, or a plan file"
    parser.add_argument("cell", metavar="CELL", help=text)
    text = "stop after round R and save a checkpoint, from which the next start resumes"
    parser.add_argument("--until", type=positive, metavar="R", help=text)
    # for `training_command` only
    parser.add_argument("--options", type=json.loads, default={}, help=argparse.SUPPRESS)


def run_command(options: argparse.Namespace) -> None:
    """Train the cell of a plan file; plan any other cell, and make its data and shards, first."""
    file = Path(options.cell)
    if file.suffix == ".json" and file.exists():
        run_cell(file, options.until, **options.options)
        return
    check_cell_text(options.cell)
    with freeze_objects():
        plan = load_plan(options)
        cell = require_cell(plan, options.cell)
        write_plan(cell.planned())
    if not Path(cell.path).exists():
        make_inputs(plan, cell)
    train_options = options_of(plan.config)["train"]
    command = training_command(plan_file(cell.digest), options.until, train_options)
    sys.stdout.flush()
    os.execv(command[0], command)


def training_command(file: Path, until: int | None, options: Mapping[str, Any]) -> list[str]:
    """The command that trains the cell of a plan file in a process of its own, which imports no
    component but the cell's: planning imports all of the user's."""
    command = [sys.executable, "-m", "cohort", "run", str(file), "--options", json.dumps(options)]
    return [*command, "--until", str(until)] if until else command


def check_cell_text(text: str) -> None:
    """Raise UserError unless a text can be the path of a record or the beginning of a digest."""
    if not text.endswith(".h5") and not re.fullmatch("k[0-9a-f]{0,12}", text):
        raise UserError(f"'{text}' is no cell: give the path of its record, or its digest")


def require_cell(plan: "planning.Plan", text: str) -> Cell:
    """The cell that `find_cell` finds. Raise UserError if there is none."""
    if cell := find_cell(plan, text):
        return cell
    raise UserError(f"no study has a cell '{text}' at scale {plan.scale}")


def find_cell(plan: "planning.Plan", text: str) -> Cell | None:
    """Find the cell whose path ends with this text or whose digest begins with it; None if no study
    has it. Raise UserError if several match. The listed studies are searched before all others."""
    path = relative_path(text)
    for studies in (plan.listed, planning.all_studies()):
        for name in studies:
            plan.study(name)
        cells = ((cell, cell.path, cell.digest) for cell in plan.cells.values())
        matches = [cell for cell, file, key in cells if file.endswith(path) or key.startswith(text)]
        if len(matches) > 1:
            raise UserError(f"'{text}' matches {len(matches)} cells; give more of it")
        if matches:
            return matches[0]
    return None


def run_cell(file: Path, until: int | None = None, **options: Any) -> None:
    """Train the cell of a plan file, whose data and shards must exist, with a progress bar. `until`
    stops after that round; the other options are those of `train`."""
    cell = read_cell(file)
    if Path(cell.path).exists():
        print(f"{cell.path} exists: delete it to train the cell again")
        return
    with freeze_objects():
        train = job.train  # imports PyTorch
    title = f"{cell.digest}, {cell.settings.strategy}, seed {cell.settings.seed}"
    with job.progress_display(cell.settings.rounds, title) as watch:
        train(file, cell.path, until=until, watch=watch, **options)
    folder = state_folder(cell.path)
    if Path(cell.path).exists():
        (folder / lease.FINISHED).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another process waits there, or has just deleted it
            folder.rmdir()


def make_data(plan: "planning.Plan", path: str) -> None:
    """Download and prepare the data set of the prepared file `path`, unless it exists."""
    if Path(path).exists():
        return
    data = plan.data[digest_in(path)]
    files = plan.datasets[data.settings["dataset"]]["files"]
    for name, file in data.inputs.items():
        if not downloading.is_downloaded(files[name], file):
            downloading.download(files[name], file, **options_of(plan.config)["download"])
    write_plan(data)
    preparing.prepare(plan_file(data.digest), path)


def make_inputs(plan: "planning.Plan", cell: Cell) -> None:
    """Make the data and shards of a cell, unless they exist."""
    make_data(plan, cell.inputs["data"])
    shards = plan.shards[digest_in(cell.inputs["shards"])]
    if not Path(shards.path).exists():
        write_plan(shards)
        dealing.deal(plan_file(shards.digest), shards.path)
