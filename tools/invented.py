"""`python -m tools.invented`: every study's tables and verdicts from invented runs.

They are in tests/results/golden, one page for each study: whatever changes in statistics, layout or
words shows there as a diff, also in studies whose runs were not trained yet.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cohort.cell.evaluations import is_evaluated, resolve_last
from cohort.core.files import write_text
from cohort.core.sealed_json import write_sealed
from cohort.pipeline.specs import (
    Spec,
    claims_spec,
    experiment_plan,
    frozen_experiment_path,
    spec_of,
)
from cohort.plan import Plan
from cohort.results.claims.judge import write_judged
from cohort.results.collect import EMPTY, Result, collect
from cohort.results.names import METRICS
from cohort.results.tables.tabulate import tabulate
from cohort.training.cell import Cell
from tools.cells import plan_all

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests/results/golden"
STUDIES = ("aml", "fedentopt", "peco", "stratify", "ucb")
DIVERGED, MISSING = 60, 200  # one run in so many


def page(study: str) -> str:
    """The tables and the verdicts of a study, from invented runs, in Markdown."""
    plan = plan_all(study)
    layout = plan.layout
    metrics = sorted(set(METRICS) & _words(plan, study))
    with _temporary_folder():
        for experiment in plan.study(study).experiments:
            _collect(plan, experiment_plan(plan, study, experiment), metrics)
        files = []
        for name in plan.study(study).tables:
            spec = spec_of(plan, study, name)
            tabulate(spec, layout.metrics(study, spec["experiment"]), layout.table(study, name))
            files += layout.table(study, name)
        if plan.study(study).claims:
            write_judged(claims_spec(plan, study, layout), layout.claims(study))
            files += layout.claims(study)
        texts = [
            Path(file).read_text(encoding="utf-8").strip() for file in files if file.endswith(".md")
        ]
    return "\n\n".join(texts) + "\n"


@contextlib.contextmanager
def _temporary_folder() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in ("config", "resources"):
            Path(name).symlink_to(ROOT / name)
        yield


def _collect(plan: Plan, content: Spec, metrics: list[str]) -> None:
    """Write these metrics of an experiment, from invented results of its cells."""
    cells = {cell.path: cell for cell in plan.cells.values()}
    write_sealed(file := frozen_experiment_path(content), content, sync=False)
    target = plan.layout.metrics(content["study"], content["experiment"])

    def result_of(path: str) -> Result:
        return invented_result(cells[path], plan.dataset_info(cells[path])["classes"], metrics)

    collect(file, target, result_of=result_of)


def _words(plan: Plan, study: str) -> set[str]:
    """All words in the specs of a study's tables and claims."""
    specs = [plan.study(study).tables, plan.study(study).claims]
    return set(json.dumps(specs, default=vars).replace('"', " ").split())


def invented_result(cell: Cell, classes: int, metrics: list[str]) -> Result:
    """The result of a cell, drawn by its digest: some runs diverge halfway, some are missing."""
    settings, rng = cell.settings, _rng(cell.digest)
    if rng.integers(MISSING) == 0:
        return Result("missing", EMPTY)
    diverged = rng.integers(DIVERGED) == 0
    last = max(1, settings.rounds // 2) if diverged else settings.rounds
    plan = resolve_last(settings.evaluate_every, settings.rounds)
    rounds = [round for round in range(1, last + 1) if is_evaluated(plan, round)] or [last]
    rows = [{"metric": "label_count", "client": settings.clients - 1, "label": classes - 1}]
    rows[0]["value"] = 1.0
    for metric in metrics:
        rows += _invented_rows(metric, rounds, cell)
    return Result("diverged" if diverged else "done", pd.DataFrame(rows))


def _invented_rows(metric: str, rounds: list[int], cell: Cell) -> list[dict[str, Any]]:
    """A metric that rises by round, or along clients, to a level that depends on the strategy."""
    rng, strategy = _rng(f"{metric} {cell.digest}"), cell.settings.strategy
    level = 0.3 + 0.3 * _rng(f"{metric} {strategy}").random() + rng.normal(0, 0.02)
    if METRICS[metric].by == "client":
        values = level + np.arange(cell.settings.clients) / 1000
        keys: list[dict[str, Any]] = [{"client": client} for client in range(cell.settings.clients)]
    elif METRICS[metric].by in ("round", "step"):
        values = level * (1 - np.exp(-np.linspace(0.3, 3, len(rounds))))
        values += rng.normal(0, 0.01, len(rounds))
        keys = [{"round": round} for round in rounds]
    else:
        return []
    return [
        {"metric": metric, "value": value} | key for key, value in zip(keys, values, strict=True)
    ]


def _rng(text: str) -> np.random.Generator:
    return np.random.default_rng(list(hashlib.sha256(text.encode()).digest()))


def main() -> None:
    """Write the page of every study."""
    for study in STUDIES:
        write_text(FOLDER / f"{study}.md", page(study))


if __name__ == "__main__":
    main()
