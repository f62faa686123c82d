"""What `cohort try` and `cohort reproduce` share: one figure or table, its cost, its run, and its
strategies side by side."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cohort.commands.cost import total
from cohort.core.errors import UserError, suggest
from cohort.core.paths import Layout, state_folder
from cohort.metrics.intervals import ALPHA, Sample
from cohort.metrics.names import METRICS
from cohort.pipeline import preview
from cohort.pipeline.cell_states import CellStatus, find_slurm_logs, made_by_another, status_of
from cohort.pipeline.driver import lock_directory
from cohort.pipeline.specs import spec_of
from cohort.pipeline.stages import output_files
from cohort.plan import Plan, all_studies, load
from cohort.plan.scale import FULL
from cohort.tables.beside import Beside, Line, beside
from cohort.tables.sizes import needs_no_runs

DASH = "\N{EN DASH}"


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the scale, a part of the matrix, and whether to run."""
    parser.add_argument("--scale", help="a scale of config/scales.yaml (config.yaml's by default)")
    parser.add_argument(
        "--only",
        default="",
        metavar="LABEL=VALUE",
        help="a part of the matrix: strategy=fedavg|loss,seed=0",
    )
    parser.add_argument("-n", "--dry-run", action="store_true", help="only say what it would cost")


@dataclass(frozen=True)
class Item:
    """A figure or table of a study."""

    plan: Plan
    study: str
    name: str

    @property
    def spec(self) -> dict[str, Any]:
        """Its entry in the study."""
        return self.plan.study(self.study).drawn()[self.name]

    @property
    def target(self) -> str:
        """Its name for Snakemake."""
        return f"{self.study}_{self.name}"

    def cells(self) -> list[CellStatus]:
        """The states of the cells that it shows, of those that can be run here."""
        logs, plan = find_slurm_logs(), self.plan
        rows = plan.rows([self.study]).get((self.study, self.spec["experiment"]), [])
        return [status_of(plan.cells[row.digest], logs) for row in rows]

    @property
    def command(self) -> str:
        """What makes it."""
        config = [f"scale={self.plan.scale}"]
        config += [f"only={self.plan.config['only']}"] if self.plan.config.get("only") else []
        return shlex.join(["snakemake", self.target, "--config", *config])


def find_item(
    text: str, options: argparse.Namespace, study: str = "", *, with_sizes: bool = False
) -> Item:
    """The figure or table `STUDY.NAME` at the scale that was asked for; `study` stands in for the
    study. What needs no runs is found only `with_sizes`."""
    named, _, name = text.partition(".")
    if named not in (known := all_studies()):
        raise UserError(f"'{text}': there is no study '{named}'{suggest(named, known)}")
    overrides = {"studies": study or named, "only": options.only}
    plan = load(overrides | ({"scale": options.scale} if options.scale else {}))
    drawn = plan.study(study or named).drawn()
    shown = [key for key, spec in drawn.items() if with_sizes or not needs_no_runs(spec)]
    for note in plan.notes if name not in shown else ():
        if re.search(rf"[(, ]{re.escape(name)}[, ].*cannot be drawn", note):
            raise UserError(f"'{text}' waits: {note}")
    if name not in shown:
        raise UserError(f"'{text}': {named} has no figure or table '{name}'{suggest(name, shown)}")
    return Item(plan, study or named, name)


def run_item(item: Item, *, against: bool, dry_run: bool, retrain: bool = False) -> None:
    """Say which cells the item shows and what the missing ones cost, train them, and print the
    item's lines: with the verdict against FedAvg, or else against the paper.

    With `retrain`, cells that the user's own files made in another version count as missing. Raise
    a UserError for a damaged record, with which nothing could be drawn.
    """
    cells = item.cells()
    for status in cells:
        if status.state == "failed" and Path(status.planned.path).exists():
            raise UserError(status.reason)
    again = [status for status in cells if retrain and status.changed]
    missing = [one.planned for one in cells if not one.is_finished or one in again]
    print(
        f"{item.study}.{item.name} at scale {item.plan.scale}: "
        f"{len(cells)} cells of {item.spec['experiment']}"
    )
    for name, count in _strategies(missing):
        print(f"  {name}: {count} {'to train' if again else 'missing'}")
    for note in item.plan.notes:
        print(note)
    print(total(item.plan, missing))
    print(f"$ {item.command}", flush=True)
    if not dry_run:
        discard(again)
        _run(item, against=against)
    for sentence in [] if again and dry_run else made_by_another(item.cells()):
        print(sentence)


def _run(item: Item, *, against: bool) -> None:
    """Train what is missing and print the lines of an item, of what exists if some cells fail."""
    done = subprocess.run([sys.executable, "-m", *shlex.split(item.command)], check=False)
    if done.returncode:
        print("not all cells were trained; what exists is shown")
    print_result(item, against=against, is_complete=done.returncode == 0)


def discard(cells: Sequence[CellStatus]) -> None:
    """Delete records and checkpoints, so that their cells are trained from the beginning."""
    if not cells:
        return
    with lock_directory():  # no driver may be at work
        for status in cells:
            Path(status.planned.path).unlink(missing_ok=True)
            shutil.rmtree(state_folder(status.planned.path), ignore_errors=True)


def _strategies(missing: Iterable[Any]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for planned in missing:
        name = planned.settings["strategy"]
        counts[name] = counts.get(name, 0) + 1
    return sorted(counts.items())


def result_of(item: Item, *, is_complete: bool) -> tuple[list[Beside], list[str]]:
    """The item's strategies side by side, measure by measure, and the files of its drawing: a
    preview where it was not drawn in full."""
    plan, study, spec = item.plan, item.plan.study(item.study), item.spec
    files = output_files(plan, study, item.name)
    metrics = plan.layout.metrics(item.study, spec["experiment"])
    if plan.config.get("only") or not is_complete:
        files = preview.draw_item(plan, item.study, item.name)
        metrics = Layout(plan.scale, partial=True).metrics(item.study, spec["experiment"])
    return beside(spec_of(plan, item.study, item.name), metrics), files


def print_result(item: Item, *, against: bool, is_complete: bool) -> None:
    """Print the lines of an item, with the verdict against FedAvg or else against the paper, and
    where it is drawn."""
    measures, files = result_of(item, is_complete=is_complete)
    for shown in measures:
        _print_measure(shown, item.plan.scale, against=against)
    print("drawn: " + ", ".join(files))


def _print_measure(shown: Beside, scale: str, *, against: bool) -> None:
    metric = METRICS[shown.metric]
    titles = ["", "paper", "ours", "against FedAvg" if against else "difference"]
    rows: list[tuple[str, list[str]]] = []
    for line in shown.lines:
        last = _against(shown, line) if against else _difference(shown, line, scale)
        texts = [line.strategy, _paper(shown, line), _ours(line, metric.digits), last]
        rows.append((line.place, texts))
    print(f"\n{shown.title}" + (" (generated data: no reproduction)" if shown.generated else ""))
    for text in _aligned(titles, rows):
        print(text)


def _aligned(titles: list[str], rows: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    table = [titles, *(texts for _, texts in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    place = None
    for named, texts in [("", titles), *rows]:
        if named != place and named:
            yield named
        place = named
        fields = (text.ljust(width) for text, width in zip(texts, widths, strict=True))
        yield "  " + "  ".join(fields).rstrip()


def _ours(line: Line, digits: int) -> str:
    if not line.values:
        return f"{DASH} (0 of {line.planned})"
    values, ours = list(line.values.values()), line.ours
    spread = ""
    if ours.n > 1:
        half = ours.half_width()
        spread = f" \N{PLUS-MINUS SIGN} {half:.{digits}f}"
    diverged = f", {line.diverged} diverged" if line.diverged else ""
    return f"{ours.mean:.{digits}f}{spread} ({len(values)} of {line.planned}{diverged})"


def _paper(shown: Beside, line: Line) -> str:
    metric = METRICS[shown.metric]
    return DASH if line.paper is None else f"{line.paper.value * metric.scale:.{metric.digits}f}"


def _against(shown: Beside, line: Line) -> str:
    metric = METRICS[shown.metric]
    if line.against is None or not line.against.n:
        return ""
    return f"{line.against.word(metric.better)} ({_bounds(line.against, metric.digits)})"


def _bounds(found: Sample, digits: int) -> str:
    if found.n < 2:
        return f"{found.mean:+.{digits}f}, one seed"
    low, high = found.interval(2 * ALPHA)  # each bound is the one-sided one behind the word
    return f"{found.mean:+.{digits}f}, {low:+.{digits}f} to {high:+.{digits}f}"


def _difference(shown: Beside, line: Line, scale: str) -> str:
    if line.paper is None or not line.values:
        return ""
    metric = METRICS[shown.metric]
    paper = line.paper.value * metric.scale
    text = f"{line.ours.mean - paper:+.{metric.digits}f}"
    if scale != FULL:
        return f"{text}, no verdict at scale {scale}"
    if line.planned == 1:
        return f"{text}, one run: no verdict"
    if shown.generated or line.ours.n < max(2, line.planned):
        return f"{text}, not enough runs for a verdict"
    inside = abs(paper - line.ours.mean) <= line.ours.half_width()
    return f"{text}, {'agrees' if inside else 'differs'}"
