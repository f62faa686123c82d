"""Hand-made studies: cells with their values, and the verdict on a claim about them."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from cohort.results.claims.claim import Claim, Matrix
from cohort.results.claims.judged import Judgment, judge_paper, judge_runs, with_values
from cohort.results.claims.kinds import CLAIMS
from cohort.results.claims.values import measured_values
from cohort.results.names import Names
from cohort.results.series import read_metric, write_metrics

NAMES = Names(titles={"strategy": {"fedavg": "FedAvg"}})
FRAME = {"says": "So it is.", "where": "Section 1", "experiment": "main", "metric": "test_accuracy"}
Cell = tuple[dict[str, Any], str, Mapping[int, float]]  # labels, status, value by round


def claim(kind: str, **fields: Any) -> Claim:
    """A claim about `main`, unless said otherwise."""
    return CLAIMS[kind](**(FRAME | fields))


def frame(cells: list[Cell], metric: str = "test_accuracy") -> pd.DataFrame:
    """Cells as the metrics of an experiment with a hundred classes."""
    rows = []
    for index, (labels, status, values) in enumerate(cells):
        row = {"digest": f"k{index}", "study": "s", "experiment": "e", **labels, "status": status}
        row["client"] = None
        rows += [
            row | {"metric": metric, "round": round, "value": value}
            for round, value in values.items()
        ]
        rows += [] if values else [row | {"metric": None, "round": None, "value": float("nan")}]
        rows += [row | {"metric": "label_count", "label": 99, "value": 1.0}]
    types = {"metric": "string", "round": "Int64", "client": "Int64", "label": "Int64"}
    return pd.DataFrame(rows).astype(types)


def matrix(**experiments: list[Cell]) -> Matrix:
    """Make the matrix of a study with these experiments, given as cells by experiment name."""
    planned = {}
    for name, cells in experiments.items():
        labels = [labels for labels, _, _ in cells]
        axes = {label: list(dict.fromkeys(row[label] for row in labels)) for label in labels[0]}
        planned[name] = (axes, labels)
    return Matrix(planned)


def verdict(
    claim: Claim,
    folder: Path,
    full: list[Cell] | None = None,
    judge: Callable[..., Judgment] = judge_runs,
    **experiments: list[Cell],
) -> Judgment:
    """What is made of a claim where all of these cells were planned; `full` are those of the
    experiment `main` at full scale, if it has more there."""
    planned = experiments | ({"main": full} if full else {})
    comparisons = claim.planned_comparisons(matrix(**planned))
    for name, cells in experiments.items():
        write_metrics(folder / f"{name}.parquet", frame(cells, claim.metric), {})
    points = [point for comparison in comparisons for point in comparison.points]
    values = measured_values(
        points, lambda experiment, metric: read_metric(folder / f"{experiment}.parquet", metric)
    )
    return judge(claim, with_values(comparisons, values), NAMES)


single = partial(verdict, judge=judge_paper)
"""The same for single values, as a paper prints them: their means are compared as they are."""


def final(value: float, status: str = "done", **labels: Any) -> Cell:
    """A cell of one evaluation."""
    defaults = {"partition": "iid", "J": "J4", "strategy": "fedavg", "seed": 0}
    return defaults | labels, status, {} if value != value else {10: value}
