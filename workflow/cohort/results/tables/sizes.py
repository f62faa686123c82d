"""Tables of message sizes: label counts against models, known before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.components import Component, parameter
from cohort.core.lazy import lazy
from cohort.core.sealed_json import read_sealed
from cohort.results.comparison import FIX
from cohort.results.names import Names
from cohort.results.paper import PaperValue, read_paper
from cohort.results.series import NO_VALUE
from cohort.results.tables.layout import Entry, Layout

if TYPE_CHECKING:
    import pandas as pd
    from pandas import DataFrame
else:
    pd = lazy("pandas")

NUMBER = 4  # bytes per number sent
FACTS = {
    "label_bytes": ("labels_MB_4CK", 1e6),
    "model_bytes": ("model_MB_4p", 1e6),
    "bytes_ratio": ("ratio_model_over_labels", 1.0),
}
"""The columns of the table, with their metric and unit in the papers' files."""
PAPER = "paper_"  # prefix of the columns with the paper's values


@dataclass(frozen=True, kw_only=True)
class Sizes(Component):
    """A table with a row per data set and model: the size of all label counts, and of a model."""

    name: ClassVar[str] = "sizes"

    paper: str = parameter(
        "",
        help="the table of the paper to compare with, as "
        "resources/paper_values/{study}.csv calls it",
    )


def needs_no_runs(spec: Mapping[str, Any]) -> bool:
    """Whether a figure or table shows sizes, which are known before anything is trained."""
    return spec.get("kind") == Sizes.name


def compute_sizes(spec: Mapping[str, Any]) -> DataFrame:
    """Compute the sizes in bytes for the rows of `spec['sizes']`, and add the paper's sizes.

    The rows have the keys dataset, model, classes, clients and weights.
    """
    numbers = pd.DataFrame(spec["sizes"])
    numbers = numbers.assign(
        label_bytes=NUMBER * numbers["classes"] * numbers["clients"],
        model_bytes=NUMBER * numbers["weights"],
    )
    numbers = numbers.assign(bytes_ratio=numbers["model_bytes"] / numbers["label_bytes"])
    rows = numbers[["dataset", "model"]].astype(str).to_dict("records")
    for fact, (metric, unit) in FACTS.items() if spec.get("paper") else ():
        values = read_paper(spec["paper_values"], spec["paper"], metric)
        numbers[PAPER + fact] = [_paper_size(values, labels) * unit for labels in rows]
    return numbers


def read_sizes(file: str | Path) -> DataFrame:
    """Read the sizes that `tabulate` wrote as JSON."""
    return pd.DataFrame(read_sealed(file, "sizes", FIX)["sizes"])


def _paper_size(values: Iterable[PaperValue], labels: Mapping[Any, str]) -> float:
    return next((value.value for value in values if value.fits(labels)), float("nan"))


def lay_out_sizes(numbers: DataFrame, names: Names) -> Layout:
    """Lay out the sizes in megabytes, a row per data set and model, the paper's next to ours."""
    shown = {
        "label_bytes": ("Labels (MB)", _megabytes),
        "model_bytes": ("Model (MB)", _megabytes),
        "bytes_ratio": ("Model / labels", _ratio),
    }
    compared = f"{PAPER}label_bytes" in numbers
    columns = [
        f"{title}{whose}"
        for title, _ in shown.values()
        for whose in ((", paper", ", ours") if compared else ("",))
    ]
    layout = Layout([names.title("dataset"), names.title("model"), "Classes", "Clients"], columns)
    for row in numbers.to_dict("records"):
        words = [names.value(label, str(row[label])) for label in ("dataset", "model")]
        words += [f"{row['classes']}", f"{row['clients']}"]
        entries = [
            Entry(NO_VALUE if math.isnan(row[key]) else text(row[key]))
            for fact, (_, text) in shown.items()
            for key in ((PAPER + fact, fact) if compared else (fact,))
        ]
        layout.lines.append((words, entries))
    layout.notes.append(
        f"Labels: {NUMBER} bytes for each class of each client, once. "
        f"Model: {NUMBER} bytes for each weight of one client's."
    )
    return layout.condensed()


def _megabytes(size: float) -> str:
    """Bytes as text in megabytes with three decimals, more for small sizes."""
    return f"{size / 1e6:.3f}" if size >= 1e5 else f"{size / 1e6:.5f}".rstrip("0")


def _ratio(value: float) -> str:
    """A ratio as text with four significant digits."""
    return f"{value:#.4g}" if value < 1000 else f"{float(f'{value:.4g}'):,.0f}"
