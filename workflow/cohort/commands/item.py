"""What `cohort try` and `cohort reproduce` share: one figure or table, its cost, its run, and its
strategies side by side."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from cohort.commands.cost import total_sentence
from cohort.commands.planning import add_only, config_texts, load_plan
from cohort.core.errors import UserError, suggest
from cohort.core.paths import state_folder
from cohort.pipeline import preview
from cohort.pipeline.cell_states import CellStatus, changed_sentences, find_slurm_logs, status_of
from cohort.pipeline.driver import lock_directory
from cohort.pipeline.specs import look_of
from cohort.pipeline.stages import output_files
from cohort.plan import Plan, require_study
from cohort.results.comparison import Comparison, Result
from cohort.results.intervals import ALPHA, Sample
from cohort.results.names import METRICS, Names
from cohort.results.series import FULL, NO_VALUE
from cohort.results.tables.leaderboard import lay_out_leaderboard
from cohort.results.tables.sizes import needs_no_runs
from cohort.training.cell import Cell


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --config, --scale, --seeds, --only and --dry-run."""
    add_only(parser)
    parser.add_argument("-n", "--dry-run", action="store_true", help="only say what it would cost")


@dataclass(frozen=True)
class Item:
    """A figure or table of a study, planned with these KEY=VALUE texts for the config."""

    plan: Plan
    study: str
    name: str
    config: Sequence[str] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """The study's entry of the figure or table."""
        return self.plan.study(self.study).drawn()[self.name]

    @property
    def target(self) -> str:
        """The Snakemake target that makes this item."""
        return f"{self.study}_{self.name}"

    def cells(self) -> list[CellStatus]:
        """The states of the cells that the item shows, of those that can be run here."""
        logs, plan = find_slurm_logs(), self.plan
        rows = plan.rows([self.study]).get((self.study, self.spec["experiment"]), [])
        return [status_of(plan.cells[row.digest], logs) for row in rows]

    @property
    def command(self) -> str:
        """The Snakemake command that rebuilds this item."""
        others = [text for text in self.config if not text.startswith("scale=")]
        config = [f"scale={self.plan.scale}", *others]
        return shlex.join(["snakemake", self.target, "--config", *config])


def find_item(
    text: str, options: argparse.Namespace, study: str = "", *, with_sizes: bool = False
) -> Item:
    """Find the figure or table `STUDY.NAME` in the plan of these options, or `NAME` in `study`
    instead. One that needs no runs is found only `with_sizes`. Raise UserError if there is none."""
    named, _, name = text.partition(".")
    plan = load_plan(options, studies=study or require_study(named))
    drawn = plan.study(study or named).drawn()
    shown = [key for key, spec in drawn.items() if with_sizes or not needs_no_runs(spec)]
    for note in plan.notes if name not in shown else ():
        if re.search(rf"[(, ]{re.escape(name)}[, ].*cannot be drawn", note):
            raise UserError(f"'{text}' waits: {note}")
    if name not in shown:
        raise UserError(f"'{text}': {named} has no figure or table '{name}'{suggest(name, shown)}")
    return Item(plan, study or named, name, config_texts(options))


def run_item(
    item: Item, *, against: bool, dry_run: bool, retrain: bool = False
) -> Comparison | None:
    """Print which cells the item shows and what the missing ones cost, train these, print the
    results, with the verdict against FedAvg or else against the paper, and return the comparison.

    With `retrain`, cells that the user's own files made in another version count as missing. Raise
    a UserError for a damaged record, with which nothing could be drawn.
    """
    cells = item.cells()
    for status in cells:
        if status.state == "failed" and Path(status.cell.path).exists():
            raise UserError(status.reason)
    again = [status for status in cells if retrain and status.changed]
    missing = [status.cell for status in cells if not status.is_finished or status in again]
    print(
        f"{item.study}.{item.name} at scale {item.plan.scale}: "
        f"{len(cells)} cells of {item.spec['experiment']}"
    )
    for name, count in _count_by_strategy(missing):
        print(f"  {name}: {count} {'to train' if again else 'missing'}")
    for note in item.plan.notes:
        print(note)
    print(total_sentence(item.plan, missing))
    print(f"$ {item.command}", flush=True)
    comparison = None
    if not dry_run:
        discard_results(again)
        comparison = _run(item, against=against)
    for sentence in [] if again and dry_run else changed_sentences(item.cells()):
        print(sentence)
    return comparison


def _run(item: Item, *, against: bool) -> Comparison:
    """Train what is missing and print the results of an item, of what exists if some cells fail."""
    done = subprocess.run([sys.executable, "-m", *shlex.split(item.command)], check=False)
    if done.returncode:
        print("not all cells were trained; what exists is shown")
    return print_result(item, against=against, is_complete=done.returncode == 0)


def discard_results(cells: Sequence[CellStatus]) -> None:
    """Delete the records and checkpoints of cells, so that these are trained from the beginning."""
    if not cells:
        return
    with lock_directory():  # no driver may be at work
        for status in cells:
            Path(status.cell.path).unlink(missing_ok=True)
            shutil.rmtree(state_folder(status.cell.path), ignore_errors=True)


def _count_by_strategy(missing: Iterable[Cell]) -> list[tuple[str, int]]:
    return sorted(Counter(cell.settings.strategy for cell in missing).items())


def result_of(item: Item, *, is_complete: bool) -> tuple[Comparison, list[str]]:
    """Read the comparison of an item's runs, and list the files of its drawing; draw a preview
    where it was not drawn in full."""
    if item.plan.config.get("only") or not is_complete:
        files = preview.draw_item(item.plan, item.study, item.name)
    else:
        files = output_files(item.plan, item.plan.study(item.study), item.name)
    comparison = next(file for file in files if file.endswith(".json"))
    return Comparison.read(comparison), files


def print_result(item: Item, *, against: bool, is_complete: bool) -> Comparison:
    """Print the results of an item, with the verdict against FedAvg or else against the paper, and
    the files of its drawing; return the comparison."""
    comparison, files = result_of(item, is_complete=is_complete)
    names = Names.of(look_of(item.plan, item.study, item.spec["experiment"]))
    if comparison.standings:
        for line in _standing_lines(comparison, names):
            print(line)
    for title, results in {} if comparison.standings else comparison.by_measure().items():
        print(f"\n{title}" + (" (generated data: no reproduction)" if comparison.generated else ""))
        for line in _result_lines(results, names, comparison.scale, against=against):
            print(line)
        if against and (sentence := _unequal_seeds(results, names)):
            print(sentence)
    print("drawn: " + ", ".join(files))
    return comparison


def _standing_lines(comparison: Comparison, names: Names) -> Iterator[str]:
    """Yield the leaderboard as lines of aligned columns, and its notes."""
    layout = lay_out_leaderboard(comparison, names)
    rows = [["", *layout.columns]]
    for words, entries in layout.lines:
        rows.append([*words, *(entry.value for entry in entries)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield from (_align(texts, widths) for texts in rows)
    yield from layout.notes


def _result_lines(
    results: Sequence[Result], names: Names, scale: str, *, against: bool
) -> Iterator[str]:
    """Yield lines of aligned columns with the results, below settings that several share."""
    varying = [label for label in results[0].labels if label in _varying_labels(results)]
    own = ["strategy", *(label for label in varying if "." in label)]  # what a strategy is
    groups: dict[str, list[list[str]]] = {}
    for result in results:
        setting = _label_phrase(result, [label for label in varying if label not in own], names)
        last = _contrast_text(result) if against else _difference_text(result, scale)
        texts = [_label_phrase(result, own, names), _paper_text(result), _our_text(result), last]
        groups.setdefault(setting, []).append(texts)
    head = ["", "paper", "ours", "against FedAvg" if against else "difference"]
    rows = [head, *chain.from_iterable(groups.values())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield _align(head, widths)
    for setting, lines in groups.items():
        yield from [setting] if setting else []
        yield from (_align(texts, widths) for texts in lines)


def _unequal_seeds(results: Sequence[Result], names: Names) -> str:
    """A sentence that counts the runs of each strategy; empty if all have the same seeds."""
    seeds: dict[str, list[list[str]]] = {}
    for result in results:
        seeds.setdefault(result.labels.get("strategy", ""), []).append(sorted(result.values))
    if len(set(map(str, seeds.values()))) < 2:
        return ""
    counts = []
    for strategy, finished in seeds.items():
        fewest, most = (pick(map(len, finished)) for pick in (min, max))
        count = f"{most}" if fewest == most else f"{fewest} to {most}"
        counts.append(f"{names.phrase('strategy', strategy)} {count}")
    return f"unequal seeds: {', '.join(counts)}; differences are over the seeds that both have"


def _varying_labels(results: Sequence[Result]) -> set[str]:
    """The labels in which results differ, and always `strategy`."""
    values = {value for result in results for value in result.labels.items()}
    counts = Counter(label for label, _ in values)
    return {"strategy", *(label for label, count in counts.items() if count > 1)}


def _align(texts: Sequence[str], widths: Sequence[int]) -> str:
    fields = (text.ljust(width) for text, width in zip(texts, widths, strict=True))
    return "  " + "  ".join(fields).rstrip()


def _label_phrase(result: Result, labels: Iterable[str], names: Names) -> str:
    """The values of these labels of a result as one text, separated by commas; labels without a
    value are left out."""
    shown = (label for label in labels if result.labels.get(label, NO_VALUE) != NO_VALUE)
    return ", ".join(names.phrase(label, result.labels[label]) for label in shown)


def _our_text(result: Result) -> str:
    if not result.values:
        return f"{NO_VALUE} (0 of {result.planned})"
    ours = _in_display_units(result, result.sample)
    spread = f" \N{PLUS-MINUS SIGN} {ours.half_width():.{_digits(result)}f}" if ours.n > 1 else ""
    diverged = f", {result.diverged} diverged" if result.diverged else ""
    return f"{ours.mean:.{_digits(result)}f}{spread} ({ours.n} of {result.planned}{diverged})"


def _paper_text(result: Result) -> str:
    metric = METRICS[result.metric]
    paper = result.paper
    return NO_VALUE if paper is None else f"{paper.value * metric.scale:.{metric.digits}f}"


def _contrast_text(result: Result) -> str:
    if result.against is None or not result.against.n:
        return ""
    contrast, digits = _in_display_units(result, result.against), _digits(result)
    bounds = f"{contrast.mean:+.{digits}f}, one seed"
    if contrast.n > 1:
        low, high = contrast.interval(2 * ALPHA)  # the one-sided bounds behind the verdict
        bounds = f"{contrast.mean:+.{digits}f}, {low:+.{digits}f} to {high:+.{digits}f}"
    return f"{contrast.word(METRICS[result.metric].better)} ({bounds})"


def _difference_text(result: Result, scale: str) -> str:
    if result.paper is None or not result.values:
        return ""
    metric = METRICS[result.metric]
    verdict = result.verdict if scale == FULL else f"no verdict at scale {scale}"
    difference = f"{result.difference * metric.scale:+.{metric.digits}f}"
    return ", ".join(text for text in (difference, verdict) if text)


def _in_display_units(result: Result, sample: Sample) -> Sample:
    """Scale a mean and standard deviation to the metric's display unit, e.g. a share to percent."""
    return sample.scaled(METRICS[result.metric].scale)


def _digits(result: Result) -> int:
    return METRICS[result.metric].digits
