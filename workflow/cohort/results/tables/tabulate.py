"""Writes one table as JSON, CSV, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cohort.core.files import write_text
from cohort.core.sealed_json import to_sealed_json
from cohort.results.comparison import Comparison, compare
from cohort.results.files import restored_notes
from cohort.results.names import Names
from cohort.results.tables.layout import Layout, latex, markdown
from cohort.results.tables.leaderboard import (
    compare_across,
    lay_out_leaderboard,
    leaderboard_numbers,
)
from cohort.results.tables.means import lay_out
from cohort.results.tables.spec import Leaderboard, Table


def tabulate(
    spec: Mapping[str, Any], metrics_file: str | Path, outputs: Sequence[str | Path]
) -> None:
    """Write the table of `spec` to each output; its suffix (.json, .csv, .md, .tex) sets the
    format.

    JSON holds the whole comparison, CSV its unrounded numbers.
    """
    comparison = compare_table(spec, metrics_file)
    layout = lay_out_table(spec, comparison)
    layout.notes.extend(restored_notes([metrics_file]))
    title, caption = spec.get("title", ""), spec.get("caption", "")
    formats = {
        ".json": lambda: to_sealed_json(comparison.as_json()),
        ".csv": lambda: numbers_of(comparison).to_csv(
            index=False, lineterminator="\n", float_format="%.10g"
        ),
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
    """A comparison as a table of unrounded numbers in the metrics' stored units: a row for each
    result, or for each strategy of a leaderboard."""
    if comparison.standings:
        return leaderboard_numbers(comparison)
    rows = []
    for result in comparison.results:
        sample, paper, agreed = result.sample, result.paper, result.agreement
        low, high = result.interval if sample.n > 1 else (None, None)
        row: dict[str, Any] = {**result.labels, "metric": result.metric, "at": result.at}
        row |= {"mean": sample.mean, "sd": sample.sd, "low": low, "high": high, "n": sample.n}
        row |= {"planned": result.planned, "finished": result.finished}
        row |= {"diverged": result.diverged, "best": int(result.best)}
        if comparison.has_paper:
            low, high = agreed.interval if agreed and agreed.interval else (None, None)
            row |= {"paper": paper and paper.value, "paper_sd": paper and paper.sd}
            row |= {"difference": result.difference, "difference_low": low, "difference_high": high}
            row |= {"margin": result.margin, "verdict": result.verdict}
            row |= {key: getattr(paper, key, "") for key in ("item", "source", "doubtful")}
        rows.append(row)
    return pd.DataFrame(rows, columns=None if rows else comparison.labels)
