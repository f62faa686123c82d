"""`python -m tools.curve_table METRICS ITEM LABEL=VALUE ... > CSV`: a measured curve beside its paper's, as docs/curves
holds it; with `-` for ITEM, the measured one alone.

METRICS is what `cohort draw aml` collects, such as results/full/partial/metrics/aml/classes.parquet. How far the two lie apart over the
shared rounds from 20 on (or over all, where there are fewer), from 51 on, and in each 50 rounds, goes to standard error.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]


MEASURED = [
    "test_accuracy",
    "test_loss",
    "validation_accuracy",
    "validation_loss",
    "test_classes_named",
    "train_loss",
    "update_norm",
]


def main(metrics: str, item: str, *labels: str) -> None:
    """Print as CSV the evaluated rounds of the runs with these labels, a column per metric, beside
    the paper's values of an item; say on standard error how far the two lie apart."""
    chosen = dict(label.split("=", 1) for label in labels)
    ours = wide(pd.read_parquet(metrics), chosen).dropna(subset="test_accuracy")
    if item == "-":
        ours.to_csv(sys.stdout, float_format="%.4f", lineterminator="\n")
        return
    values = pd.read_csv(ROOT / "resources/paper_values/aml_curves.csv", low_memory=False)
    both = ours.join(wide(values[values["item"] == item], chosen).add_prefix("authors_"))
    both.to_csv(sys.stdout, float_format="%.4f", lineterminator="\n")
    for metric in ("test_accuracy", "test_loss"):
        apart = both[metric] - both[f"authors_{metric}"]
        starts = [20 if len(apart.loc[20:]) else 1, 51]
        spans = [(start, int(apart.index[-1])) for start in starts] + [
            (end - 49, end) for end in range(50, int(apart.index[-1]) + 1, 50)
        ]
        for start, end in spans:
            span = apart.loc[start:end].dropna()
            if len(span):
                difference = f"{span.mean():+.4f} in the mean of {len(span)} rounds, {span.abs().max():.4f} at most"
                print(f"{metric}, rounds {start} to {end}: {difference}", file=sys.stderr)


def wide(rows: pd.DataFrame, labels: dict[str, str]) -> pd.DataFrame:
    """Pivot rows to a line for each round and a column for each metric that was measured."""
    for label, value in labels.items():
        rows = rows[rows[label].astype(str) == value]
    by_metric = rows[rows["metric"].isin(MEASURED)].pivot(
        index="round", columns="metric", values="value"
    )
    return by_metric[[metric for metric in MEASURED if metric in by_metric]]


if __name__ == "__main__":
    main(*sys.argv[1:])
