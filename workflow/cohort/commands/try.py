"""`cohort try`: train what a figure or table lacks, perhaps with strategies of yours."""

import argparse
import hashlib
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from cohort.commands import shared
from cohort.commands.status import PlannedItem, find_item, item_lines
from cohort.core import check_allowed, errors_at, user_files
from cohort.core.files import write_text
from cohort.pipeline import preview, stages
from cohort.pipeline.driver import lock_directory
from cohort.plan import load
from cohort.results.comparison import Comparison, Result
from cohort.results.names import METRICS, Names
from cohort.results.series import FULL, NO_VALUE
from cohort.results.statistics import ALPHA

MAX_NAME_LENGTH = 60  # of a study


def try_arguments(parser: argparse.ArgumentParser) -> None:
    text = "a strategy, e.g. of my/strategies.yaml; without one, the paper's numbers are compared"
    parser.add_argument("strategies", nargs="*", metavar="STRATEGY", help=text)
    text = "a figure or table, e.g. fedentopt.tab1"
    parser.add_argument("--on", required=True, metavar="STUDY.NAME", help=text)
    shared.add_config(parser, *shared.OPTIONS)
    parser.add_argument("-n", "--dry-run", action="store_true", help="print the cost; do not train")


def try_command(options: argparse.Namespace) -> None:
    """Say which cells the figure or table shows and what the missing ones cost, train them, and
    print the results, compared with FedAvg if strategies are named, else with the paper."""
    if not options.dry_run:
        lock_directory().close()  # another driver's cells would be shown as missing
    item = _item_with_strategies(options)
    print(*item_lines(item), sep="\n", flush=True)
    if not options.dry_run:
        is_complete = run_driver(item.command)
        against_fedavg = bool(options.strategies)
        for line in _outcome(item, is_complete=is_complete, against_fedavg=against_fedavg):
            print(line)
    for sentence in user_files.changed_sentences(status.changed for status in item.statuses()):
        print(sentence)
    if not options.dry_run and not is_complete:
        sys.exit(1)


def _item_with_strategies(options: argparse.Namespace) -> PlannedItem:
    """The figure or table, of a new study in my/studies if it lacks some of the strategies."""
    if not options.strategies:
        return find_item(options.on, options)
    everything = argparse.Namespace(**vars(options) | dict.fromkeys(shared.OPTIONS))
    item = find_item(options.on, everything)
    strategies = list(dict.fromkeys(options.strategies))
    for name in strategies:
        check_allowed(name, item.plan.strategies, f"there is no strategy '{name}'")
    experiment = item.plan.study(item.study).experiments[item.spec["experiment"]]
    new = [name for name in strategies if name not in experiment.axes["strategy"]]
    if not new:
        return find_item(options.on, options)
    study, content = extending_study(item, new)
    item = find_item(options.on, options, study, content)
    if not options.dry_run:
        write_text(_study_file(study), yaml.safe_dump(content, sort_keys=False))
    return item


def extending_study(item: PlannedItem, strategies: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The name and the content of the study that adds strategies to an item's experiment, not the
    name of one that adds others. Raise UserError if it is impossible at any scale, because every
    command would stumble over it."""
    experiment = item.spec["experiment"]
    added = [f"+{strategy}" for strategy in strategies]
    content: dict[str, Any] = {
        "title": f"{', '.join(strategies)} on {item.study}.{experiment}",
        "experiments": {experiment: {"extends": f"{item.study}.{experiment}", "strategy": added}},
    }
    words = "_".join([*strategies, item.study, experiment])
    name = f"try_{re.sub(r'[^a-z0-9]+', '_', words)}"
    file = _study_file(name)
    before = item.plan.validator.read(file, "study") if file.exists() else content
    if len(name) > MAX_NAME_LENGTH or before["experiments"] != content["experiments"]:
        name = f"{name[: MAX_NAME_LENGTH - 9]}_{hashlib.sha256(words.encode()).hexdigest()[:8]}"
    with errors_at(f"{' and '.join(strategies)} cannot be tried on {item.study}.{item.name}"):
        for scale in item.plan.scales:
            plan = load({"scale": scale, "studies": item.study, "only": ""})
            plan.check(_study_file(name), content)
    return name, content


def _study_file(study: str) -> Path:
    return Path(user_files.folder(), "studies", f"{study}.yaml")


def run_driver(command: str) -> bool:
    """Run a Snakemake command; return whether all went well."""
    driver = subprocess.Popen([sys.executable, "-m", *shlex.split(command)])
    try:
        return driver.wait() == 0
    except KeyboardInterrupt:
        driver.wait()  # Ctrl-C reached it too: it saves its cells and ends
        raise


def _outcome(item: PlannedItem, *, is_complete: bool, against_fedavg: bool) -> Iterator[str]:
    """Yield an item's results and the files of its drawing, of a preview if not drawn in full."""
    if item.plan.config.get("only") or not is_complete:
        files = preview.draw_item(item.plan, item.study, item.name)
    else:
        files = stages.output_files(item.plan.layout, item.plan.study(item.study), item.name)
    file = {Path(file).suffix: file for file in files}
    comparison = Comparison.read(file[".json"])
    if comparison.standings:
        yield "\n" + re.sub(r"<br>|\*\*", " ", Path(file[".md"]).read_text(encoding="utf-8"))
    else:
        names = Names.of(stages.style_of(item.plan, item.study, item.spec["experiment"]))
        yield from result_lines(comparison, names, against_fedavg=against_fedavg)
    if item.plan.config.get("only"):
        yield "this shows all runs that exist, not only those of --only"
    yield "drawn: " + ", ".join(files)
    if not is_complete:
        yield "not all cells were trained, so this shows what exists; see the errors above"


def result_lines(comparison: Comparison, names: Names, *, against_fedavg: bool) -> Iterator[str]:
    """Yield the results of each measure as aligned columns, below the settings that several share,
    with the verdict against FedAvg or else against the paper."""
    for title, results in comparison.by_measure().items():
        yield f"\n{title}"
        pairs = {pair for result in results for pair in result.labels.items()}
        values = Counter(label for label, _ in pairs)
        varying = [label for label in results[0].labels if label == "strategy" or values[label] > 1]
        methods = [label for label in varying if label == "strategy" or "." in label]
        head = ["  ", "paper", "ours", "against FedAvg" if against_fedavg else "difference"]
        groups: dict[str | None, list[list[str]]] = {None: [head]}
        for result in results:
            setting = _phrases(result, [label for label in varying if label not in methods], names)
            name = f"  {_phrases(result, methods, names) or 'other strategies' * bool(methods)}"
            row = [name, *_numbers(result, comparison.scale, against_fedavg=against_fedavg)]
            groups.setdefault(setting, []).append(row)
        widths = [max(map(len, column)) for column in zip(*chain(*groups.values()), strict=True)]
        for shown_setting, rows in groups.items():
            yield from [shown_setting] if shown_setting else []
            yield from (shared.GAP.join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _phrases(result: Result, labels: Sequence[str], names: Names) -> str:
    present = (label for label in labels if result.labels.get(label, NO_VALUE) != NO_VALUE)
    return ", ".join(names.phrase(label, result.labels[label]) for label in present)


def _numbers(result: Result, scale: str, *, against_fedavg: bool) -> list[str]:
    """The paper's value, ours, and the verdict against FedAvg or else against the paper."""
    metric = METRICS[result.metric]
    number, signed = f".{metric.digits}f", f"+.{metric.digits}f"
    paper = f"{result.paper.value * metric.scale:{number}}" if result.paper else NO_VALUE
    if not result.values:
        return [paper, f"{NO_VALUE} (0 of {result.planned})", ""]
    sample = result.sample.scaled(metric.scale)
    are_seeds = not any(" " in run for run in result.values)  # else of several settings
    spread = f" ± {sample.sd:{number}}" if sample.n > 1 and are_seeds else ""
    diverged = f", {result.diverged} diverged" if result.diverged else ""
    ours = f"{sample.mean:{number}}{spread} ({sample.n} of {result.planned}{diverged})"
    verdict = ""
    if against_fedavg and result.against and result.against.n:
        contrast = result.against.scaled(metric.scale)
        bounds = "one seed"
        if contrast.n > 1:
            low, high = contrast.interval(2 * ALPHA)  # each bound is one-sided
            bounds = f"{low:{signed}} to {high:{signed}}"
        judged = contrast.verdict(metric.better) if metric.better else "differs by"
        verdict = f"{judged} ({contrast.mean:{signed}}, {bounds})"
    elif result.paper and not against_fedavg:
        judged = result.verdict if scale == FULL else f"no verdict at scale {scale}"
        difference = f"{result.difference * metric.scale:{signed}}"
        verdict = f"{difference}, {judged}" if judged else difference
    return [paper, ours, verdict]
