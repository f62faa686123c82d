"""`python -m tools.curve_columns METRICS METRIC LABELS [LABEL=VALUE ...] > CSV`: the curves of an
experiment side by side, as docs/curves holds them, a column per strategy.

METRICS is what the pipeline collects, such as results/full/metrics/aml/classes.parquet; there is a
row for each round and each combination of LABELS, which commas separate.
"""

from __future__ import annotations

import sys

import pandas as pd


def main(metrics: str, metric: str, labels: str, *chosen: str) -> None:
    """Print a metric's evaluated rounds as CSV, a column per strategy."""
    cells = pd.read_parquet(metrics)
    cells = cells[(cells["metric"] == metric) & cells["round"].notna()]
    for label, value in (text.split("=", 1) for text in chosen):
        cells = cells[cells[label].astype(str) == value]
    rows = [*labels.split(","), "round"]
    table = cells.pivot_table(index=rows, columns="strategy", values="value", observed=True)
    table.round(4).to_csv(sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
