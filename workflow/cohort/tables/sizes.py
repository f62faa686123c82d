"""What label counts and models weigh: known before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.components import Component, parameter
from cohort.metrics.names import Names
from cohort.metrics.paper import read_paper
from cohort.metrics.summary import NO_VALUE
from cohort.tables.layout import Entry, Layout

if TYPE_CHECKING:
    from pandas import DataFrame

NUMBER = 4  # bytes of a number that is sent
FACTS = {
    "label_bytes": ("labels_MB_4CK", 1e6),
    "model_bytes": ("model_MB_4p", 1e6),
    "bytes_ratio": ("ratio_model_over_labels", 1.0),
}
"""What the table holds, and the metric and unit of it among a paper's values."""
BESIDE = "paper_"  # begins the name of a fact as the paper has it


@dataclass(frozen=True, kw_only=True)
class Sizes(Component):
    """A line for each data set and model of an experiment: what the label counts of all clients weigh, and the model of one of them."""

    name: ClassVar[str] = "sizes"

    paper: str = parameter(
        "",
        help="the table of the paper whose sizes stand beside, as resources/paper_values/{study}.csv calls it",
    )


def needs_no_runs(spec: Mapping[str, Any]) -> bool:
    """Whether a figure or table shows what is known before anything is trained."""
    return spec.get("kind") == Sizes.name


def weigh(spec: Mapping[str, Any]) -> DataFrame:
    """The `sizes` of a spec (dataset, model, classes, clients, weights), what they weigh, and what the paper says."""
    import pandas as pd

    numbers = pd.DataFrame(spec["sizes"])
    numbers = numbers.assign(
        label_bytes=NUMBER * numbers["classes"] * numbers["clients"],
        model_bytes=NUMBER * numbers["weights"],
    )
    numbers = numbers.assign(bytes_ratio=numbers["model_bytes"] / numbers["label_bytes"])
    places = [{label: str(one[label]) for label in ("dataset", "model")} for one in spec["sizes"]]
    for fact, (metric, unit) in FACTS.items() if spec.get("paper") else ():
        values = read_paper(spec["paper_values"], spec["paper"], metric)
        found = [[value.value * unit for value in values if value.fits(place)] for place in places]
        numbers[BESIDE + fact] = [one[0] if one else float("nan") for one in found]
    return numbers


def lay_out_sizes(numbers: DataFrame, names: Names) -> Layout:
    """A line for each model of each data set, in megabytes, the paper's sizes beside ours."""
    shown = {
        "label_bytes": ("Labels (MB)", _megabytes),
        "model_bytes": ("Model (MB)", _megabytes),
        "bytes_ratio": ("Model / labels", _ratio),
    }
    beside = f"{BESIDE}label_bytes" in numbers
    columns = [
        f"{title}{whose}"
        for title, _ in shown.values()
        for whose in ((", paper", ", ours") if beside else ("",))
    ]
    layout = Layout([names.title("dataset"), names.title("model"), "Classes", "Clients"], columns)
    for row in numbers.to_dict("records"):
        words = [
            *(names.value(label, str(row[label])) for label in ("dataset", "model")),
            f"{row['classes']}",
            f"{row['clients']}",
        ]
        texts = [
            text(row[key])
            for fact, (_, text) in shown.items()
            for key in ((BESIDE + fact, fact) if beside else (fact,))
        ]
        layout.lines.append((words, [Entry(text) for text in texts]))
    layout.notes.append(
        f"Labels: {NUMBER} bytes for each class of each client, once. Model: {NUMBER} bytes for each weight of one client's."
    )
    return layout


def _megabytes(size: float) -> str:
    """Three digits behind the point, and for small sizes as many as they need."""
    if size != size:
        return NO_VALUE
    return f"{size / 1e6:.3f}" if size >= 1e5 else f"{size / 1e6:.5f}".rstrip("0")


def _ratio(value: float) -> str:
    """Four significant digits."""
    if value != value:
        return NO_VALUE
    return f"{value:#.4g}" if value < 1000 else f"{float(f'{value:.4g}'):,.0f}"
