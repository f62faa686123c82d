"""`python -m tools.invented`: every study's tables and verdicts from invented runs.

They are in tests/results/golden, one page for each study: whatever changes in statistics, layout or
words shows there as a diff, also in studies whose runs were not trained yet.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterator

import numpy as np

from cohort.core.files import write_text
from cohort.results.collect import PLACEHOLDER_ROW, CellResult, Values, metric_table
from cohort.results.names import METRICS
from cohort.settings import is_evaluated, resolve_last
from cohort.training.cell import Cell
from tools.cells import plan_all
from tools.study import ROOT, collect_results, markdown_tables, work_folder

FOLDER = ROOT / "tests/results/golden"
STUDIES = ("aml", "fedentopt", "peco", "stratify", "ucb")
DIVERGED, MISSING = 60, 200  # one run in so many


def page(study: str) -> str:
    """The tables and the verdicts of a study, from invented runs, in Markdown."""
    plan = plan_all(study)
    specs = [plan.study(study).tables, plan.study(study).claims]
    words = set(json.dumps(specs, default=vars).replace('"', " ").split())
    metrics = sorted(set(METRICS) & words)

    @functools.cache
    def result_of(digest: str) -> CellResult:
        cell = plan.cells[digest]
        return invented_result(cell, plan.dataset_info(cell)["classes"], metrics)

    with work_folder() as folder, contextlib.chdir(folder):
        collect_results(plan, study, result_of)
        return "\n\n".join(markdown_tables(plan, study).values()) + "\n"


def invented_result(cell: Cell, classes: int, metrics: list[str]) -> CellResult:
    """The result of a cell, drawn by its digest: some runs diverge halfway, some are missing."""
    settings, rng = cell.settings, _rng(cell.digest)
    if rng.integers(MISSING) == 0:
        return CellResult("missing", PLACEHOLDER_ROW)
    diverged = rng.integers(DIVERGED) == 0
    last = max(1, settings.rounds // 2) if diverged else settings.rounds
    plan = resolve_last(settings.evaluate_every, settings.rounds)
    rounds = [round for round in range(1, last + 1) if is_evaluated(plan, round)] or [last]
    ends = {"client": [settings.clients - 1], "label": [classes - 1]}
    parts = [("label_count", [1.0], ends), *_invented_values(metrics, rounds, cell)]
    return CellResult("diverged" if diverged else "done", metric_table(parts))


def _invented_values(metrics: list[str], rounds: list[int], cell: Cell) -> Iterator[Values]:
    """Metrics that rise by round, or along clients, to a level that depends on the strategy."""
    for metric in metrics:
        rng, strategy = _rng(f"{metric} {cell.digest}"), cell.settings.strategy
        level = 0.3 + 0.3 * _rng(f"{metric} {strategy}").random() + rng.normal(0, 0.02)
        if METRICS[metric].by == "client":
            clients = np.arange(cell.settings.clients)
            yield metric, level + clients / 1000, {"client": clients}
        elif METRICS[metric].by in ("round", "step"):
            values = level * (1 - np.exp(-np.linspace(0.3, 3, len(rounds))))
            yield metric, values + rng.normal(0, 0.01, len(rounds)), {"round": rounds}


def _rng(text: str) -> np.random.Generator:
    return np.random.default_rng(list(hashlib.sha256(text.encode()).digest()))


def main() -> None:
    """Write the page of every study."""
    for study in STUDIES:
        write_text(FOLDER / f"{study}.md", page(study))


if __name__ == "__main__":
    main()
