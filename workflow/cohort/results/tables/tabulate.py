"""Writes one table as JSON, CSV, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cohort.core.files import write_text
from cohort.core.sealed_json import to_sealed_json
from cohort.results.comparison import Comparison, Result, compare
from cohort.results.files import restored_notes
from cohort.results.names import Names
from cohort.results.tables.forms import latex, markdown
from cohort.results.tables.layout import Layout
from cohort.results.tables.leaderboard import (
    compare_across,
    lay_out_leaderboard,
    leaderboard_numbers,
)
from cohort.results.tables.means import lay_out
from cohort.results.tables.spec import Leaderboard, Table

NO_INTERVAL = (np.nan, np.nan)


def tabulate(
    spec: Mapping[str, Any], metrics_file: str | Path, outputs: Sequence[str | Path]
) -> None:
    """Write the table of `spec` to each output; its suffix (.json, .csv, .md, .tex) sets the
    format.

    JSON holds the whole comparison, CSV its unrounded numbers.
    """
    comparison = compare_table(spec, metrics_file)
    content, numbers = comparison.as_json(), numbers_of(comparison)
    layout = lay_out_table(spec, comparison)
    layout.notes.extend(restored_notes([metrics_file]))
    title, caption = spec.get("title", ""), spec.get("caption", "")
    formats = {
        ".json": lambda: to_sealed_json(content),
        ".csv": lambda: numbers.to_csv(index=False, lineterminator="\n", float_format="%.10g"),
        ".md": lambda: markdown(layout, title, caption),
        ".tex": lambda: latex(layout, title, caption),
    }
    for output in outputs:
        write_text(output, formats[Path(output).suffix]())


def compare_table(spec: Mapping[str, Any], metrics_file: str | Path) -> Comparison:
    """Compare the runs that a table shows."""
    if spec.get("kind") == Leaderboard.name:
        return compare_across(spec, metrics_file)
    return compare(Table.from_spec(spec).measures(), spec, metrics_file)


def lay_out_table(spec: Mapping[str, Any], comparison: Comparison) -> Layout:
    """The comparison of a table, rounded and titled for readers."""
    names = Names.of(spec["look"])
    if comparison.standings:
        return lay_out_leaderboard(comparison, names)
    return lay_out(comparison, names, joined=spec.get("joined", False))


def numbers_of(comparison: Comparison) -> pd.DataFrame:
    """Convert a comparison to a table of unrounded numbers in the metrics' stored units: a row for
    each result, or for each strategy of a leaderboard."""
    if comparison.standings:
        return leaderboard_numbers(comparison)
    rows = []
    for result in comparison.results:
        rows.append(_measured(result) | (_compared(result) if comparison.has_paper else {}))
    return pd.DataFrame(rows, columns=None if rows else comparison.labels)


def _measured(result: Result) -> dict[str, Any]:
    """The columns of a result that say what our runs are."""
    sample = result.sample
    low, high = result.interval if sample.n > 1 else NO_INTERVAL
    return {
        **result.labels,
        "metric": result.metric,
        "at": result.at,
        "mean": sample.mean,
        "sd": sample.sd,
        "low": low,
        "high": high,
        "n": sample.n,
        "planned": result.planned,
        "finished": result.finished,
        "diverged": result.diverged,
        "best": int(result.best),
    }


def _compared(result: Result) -> dict[str, Any]:
    """The columns of a result that compare it with a paper."""
    paper, agreed = result.paper, result.agreement
    low, high = agreed.interval if agreed and agreed.interval else NO_INTERVAL
    return {
        "paper": paper.value if paper else np.nan,
        "paper_sd": paper.sd if paper else np.nan,
        "difference": result.difference,
        "difference_low": low,
        "difference_high": high,
        "margin": result.margin,
        "verdict": result.verdict,
        "item": paper.item if paper else "",
        "source": paper.source if paper else "",
        "doubtful": paper.doubtful if paper else "",
    }
