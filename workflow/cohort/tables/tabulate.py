"""Writes one table in the forms that its outputs' endings ask for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cohort.files import write_text
from cohort.records.names import Names
from cohort.records.summary import reads_generated
from cohort.tables.forms import latex, markdown
from cohort.tables.layout import lay_out
from cohort.tables.measure import measure
from cohort.tables.spec import Table


def tabulate(spec: Mapping[str, Any], metrics_file: str | Path, outputs: Sequence[str | Path]) -> None:
    """Tabulate an experiment's metrics: .csv holds the plain numbers, .md and .tex are for reading."""
    table = Table(**{field.name: spec[field.name] for field in dataclasses.fields(Table) if field.name in spec})
    numbers = measure(table, spec, metrics_file)
    layout = lay_out(numbers, Names.of(spec["look"]), scale=spec.get("scale", "full"), generated=reads_generated(metrics_file))
    title, caption = spec.get("title", ""), spec.get("caption", "")
    forms = {
        ".csv": lambda: numbers.to_csv(index=False, lineterminator="\n", float_format="%.10g"),
        ".md": lambda: markdown(layout, title, caption),
        ".tex": lambda: latex(layout, title, caption),
    }
    for output in outputs:
        write_text(output, forms[Path(output).suffix]())
