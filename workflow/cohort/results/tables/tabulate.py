"""Writes one table as CSV, Markdown and LaTeX."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cohort.core.files import write_text
from cohort.results.names import Names
from cohort.results.series import reads_generated
from cohort.results.tables.compare import PAPER_NUMBERS
from cohort.results.tables.forms import latex, markdown
from cohort.results.tables.layout import Layout, lay_out
from cohort.results.tables.measure import NUMBERS, measure
from cohort.results.tables.sizes import lay_out_sizes, needs_no_runs, weigh
from cohort.results.tables.spec import Table


def tabulate(
    spec: Mapping[str, Any], metrics_file: str | Path, outputs: Sequence[str | Path]
) -> None:
    """Write the table of `spec` to each output; its suffix (.csv, .md, .tex) sets the format.

    The CSV holds unrounded numbers. Tables of sizes do not read `metrics_file`.
    """
    numbers = weigh(spec) if needs_no_runs(spec) else measure(_table(spec), spec, metrics_file)
    layout = lay_out_table(numbers, spec, Names.of(spec["look"]), metrics_file)
    title, caption = spec.get("title", ""), spec.get("caption", "")
    formats = {
        ".csv": lambda: numbers.to_csv(index=False, lineterminator="\n", float_format="%.10g"),
        ".md": lambda: markdown(layout, title, caption),
        ".tex": lambda: latex(layout, title, caption),
    }
    for output in outputs:
        write_text(output, formats[Path(output).suffix]())


def read_numbers(file: Path, *, sizes: bool) -> pd.DataFrame:
    """Read the CSV of a table; labels stay text, so that a label `NA` is no missing value."""
    if sizes:
        return pd.read_csv(file, dtype={"dataset": str, "model": str})
    header = pd.read_csv(file, nrows=0).columns
    numeric = (*NUMBERS, *PAPER_NUMBERS)
    return pd.read_csv(
        file,
        dtype={column: str for column in header if column not in numeric},
        keep_default_na=False,
        na_values={column: [""] for column in ("mean", "sd", "low", "high", *PAPER_NUMBERS)},
    )


def lay_out_table(
    numbers: pd.DataFrame, spec: Mapping[str, Any], names: Names, metrics_file: str | Path
) -> Layout:
    """The numbers of a table, or of a table of sizes, rounded and titled for readers."""
    if needs_no_runs(spec):
        return lay_out_sizes(numbers, names)
    return lay_out(
        numbers,
        names,
        scale=spec.get("scale", "full"),
        generated=reads_generated(metrics_file),
        joined=spec.get("joined", False),
    )


def _table(spec: Mapping[str, Any]) -> Table:
    fields = (field.name for field in dataclasses.fields(Table))
    return Table(**{name: spec[name] for name in fields if name in spec})
