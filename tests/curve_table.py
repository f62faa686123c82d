"""A measured curve beside its paper's, as docs/curves holds it: `python -m tests.curve_table METRICS ITEM PARTITION J > CSV`.

METRICS is what `cohort draw aml` collects, results/full/partial/metrics/aml/classes.parquet. How far the two lie apart in the mean over the
shared rounds from 20 on goes to standard error.
"""

from __future__ import annotations

import sys

import pandas as pd

from tests.conftest import ROOT

MEASURED = ["test_accuracy", "test_loss", "validation_accuracy", "validation_loss"]


def main(metrics: str, item: str, partition: str, J: str) -> None:
    """Print the rounds that were evaluated."""
    ours = wide(pd.read_parquet(metrics), partition, J)[MEASURED].dropna(subset="test_accuracy")
    values = pd.read_csv(ROOT / "resources/paper_values/aml_curves.csv")
    both = ours.join(wide(values[values["item"] == item], partition, J).add_prefix("authors_"))
    both.to_csv(sys.stdout, float_format="%.4f", lineterminator="\n")
    for metric in ("test_accuracy", "test_loss"):
        apart = (both[metric] - both[f"authors_{metric}"]).loc[20:]
        print(f"{metric}: {apart.mean():+.4f} in the mean, {apart.abs().max():.4f} at most", file=sys.stderr)


def wide(rows: pd.DataFrame, partition: str, J: str) -> pd.DataFrame:
    """A line for each round, a column for each metric."""
    chosen = rows[(rows["partition"] == partition) & (rows["J"] == J) & rows["metric"].isin(MEASURED)]
    return chosen.pivot(index="round", columns="metric", values="value")


if __name__ == "__main__":
    main(*sys.argv[1:])
