"""Writes one table in the forms that its outputs' endings ask for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.core.files import write_text
from cohort.metrics.names import Names
from cohort.metrics.summary import reads_generated
from cohort.tables.forms import latex, markdown
from cohort.tables.layout import Layout, lay_out
from cohort.tables.measure import measure
from cohort.tables.sizes import lay_out_sizes, needs_no_runs, weigh
from cohort.tables.spec import Table

if TYPE_CHECKING:
    from pandas import DataFrame


def tabulate(
    spec: Mapping[str, Any], metrics_file: str | Path, outputs: Sequence[str | Path]
) -> None:
    """Tabulate an experiment's metrics, which sizes do without: .csv holds the plain numbers, .md and .tex are for reading."""
    numbers = weigh(spec) if needs_no_runs(spec) else measure(_table(spec), spec, metrics_file)
    layout = laid_out(numbers, spec, Names.of(spec["look"]), metrics_file)
    title, caption = spec.get("title", ""), spec.get("caption", "")
    forms = {
        ".csv": lambda: numbers.to_csv(index=False, lineterminator="\n", float_format="%.10g"),
        ".md": lambda: markdown(layout, title, caption),
        ".tex": lambda: latex(layout, title, caption),
    }
    for output in outputs:
        write_text(output, forms[Path(output).suffix]())


def laid_out(
    numbers: DataFrame, spec: Mapping[str, Any], names: Names, metrics_file: str | Path
) -> Layout:
    """The numbers of a table as a person reads them."""
    if needs_no_runs(spec):
        return lay_out_sizes(numbers, names)
    generated, joined = reads_generated(metrics_file), spec.get("joined", False)
    return lay_out(
        numbers, names, scale=spec.get("scale", "full"), generated=generated, joined=joined
    )


def _table(spec: Mapping[str, Any]) -> Table:
    return Table(
        **{
            field.name: spec[field.name]
            for field in dataclasses.fields(Table)
            if field.name in spec
        }
    )
