"""What the page shows of a figure: the picture, and in words what is seen in it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.figures import KINDS
from cohort.metrics.names import METRICS, Names, listed
from cohort.metrics.summary import read_metric, value_per_cell

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_VALUES = 12  # that the text names one by one
WORDS = {
    "curves": "Curves",
    "bars": "Bars",
    "lines": "Lines",
    "scatter": "Points",
    "shards": "A grid of colored fields",
    "interval": "Points with intervals",
    "performance_profile": "Curves",
}
DIAGRAMS = {
    "win_rates": "A matrix of how often the row is ahead of the column",
    "critical_difference": "A diagram of mean ranks",
}
"""Kinds of figures whose axes say nothing."""


def data_url(picture: Path) -> str:
    """A PNG as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"


def alternative(item: Mapping[str, Any], names: Names) -> str:
    """What is seen in a figure: its title, axes, panels and hues, and the values at the end."""
    kind = WORDS.get(item["kind"], item["kind"].capitalize())
    titles = [title for title in (listed(item["y"]), item["x"]) if title]
    axes = f"{kind} of {' against '.join(titles)}"
    if item["kind"] in DIAGRAMS:
        axes = f"{DIAGRAMS[item['kind']]} by {METRICS[item['metric']].title.lower()}"
    shown = [(label, item["orders"].get(label, [])) for label in item["shown"]]
    sets = [
        f"{names.title(label)}: {', '.join(_values(label, values, names))}"
        for label, values in shown
        if len(values) > 1
    ]
    return ". ".join([str(item["title"]).rstrip("."), axes, *sets, *_means(item, names)]) + "."


def _values(label: str, values: Iterable[Any], names: Names) -> list[str]:
    return [names.value(label, str(value)) for value in values]


def _means(item: Mapping[str, Any], names: Names) -> list[str]:
    """What the kind of figure tells of itself, or else the mean of each curve or bar; if there are
    many, the lowest and highest of each hue."""
    kind = KINDS[item["kind"]](**item["fields"])
    told = kind.told(read_metric(item["metrics"], *kind.metrics()), names)
    if told is not None:
        return told
    metric = METRICS[item["metric"]]
    if metric.by != "round":
        return []
    cells = value_per_cell(read_metric(item["metrics"], item["metric"]), item["metric"], item["at"])
    means = (
        cells.assign(value=cells["value"] * metric.scale)
        .dropna(subset="value")
        .groupby(item["shown"], sort=False)["value"]
        .mean()
    )
    if not len(means):
        return []
    frame: DataFrame = means.reset_index()
    if len(frame) > MOST_VALUES:
        return _ranges(frame, item["shown"][-1], names, metric.digits)
    texts = [
        f"{', '.join(_named(row, item['shown'], names))} {row['value']:.{metric.digits}f}"
        for row in frame.to_dict("records")
    ]
    return [f"Means: {'; '.join(texts)}"]


def _ranges(frame: DataFrame, hue: str, names: Names, digits: int) -> list[str]:
    texts = [
        f"{names.value(hue, str(value))} {group.min():.{digits}f} to {group.max():.{digits}f}"
        for value, group in frame.groupby(hue, sort=False)["value"]
    ]
    return [f"Means: {'; '.join(texts)}"]


def _named(row: Mapping[Any, Any], labels: Iterable[str], names: Names) -> list[str]:
    return [names.value(label, str(row[label])) for label in labels]
