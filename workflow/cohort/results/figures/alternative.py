"""The alternative text of a figure: in words what is seen in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cohort.results.comparison import Comparison, Result
from cohort.results.figures import KINDS
from cohort.results.figures.style import Style
from cohort.results.names import METRICS

MOST_VALUES = 12  # that the text names one by one


def alternative_text(spec: Mapping[str, Any], comparison: Comparison) -> str:
    """A picture's alternative text: its title, axes, panels and hues, and the values at the end."""
    kind, style = KINDS[spec["kind"]].from_spec(spec), Style.of(spec["look"])
    x = f" against {kind.x_title(style)}" if kind.has_axes and kind.x_title(style) else ""
    labels = kind.facets()
    sets = [_values(label, style) for label in labels if len(style.orders.get(label, [])) > 1]
    shown = [result for result in comparison.results if result.metric == kind.metric]
    numbers = comparison.description or _means(shown, labels, style)
    parts = [f"{kind.picture} of {kind.subject()}{x}", *sets, *numbers]
    return ". ".join([str(spec["title"]).rstrip("."), *parts]) + "."


def _values(label: str, style: Style) -> str:
    values = [style.value(label, value) for value in style.orders[label]]
    return f"{style.title(label)}: {', '.join(values)}"


def _means(results: Sequence[Result], labels: Sequence[str], style: Style) -> list[str]:
    """Text: the mean of each curve or bar; of many, the lowest and highest of each hue."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for result in results:
        key = tuple(result.labels[label] for label in labels if label in result.labels)
        groups.setdefault(key, []).extend(result.values.values())
    means = {key: sum(values) / len(values) for key, values in groups.items() if values}
    if not means:
        return []
    metric = METRICS[results[0].metric]
    means = {key: mean * metric.scale for key, mean in means.items()}
    ends = {key: [mean] for key, mean in means.items()}
    if len(means) > MOST_VALUES:
        labels, hues = labels[-1:], dict[tuple[str, ...], list[float]]()
        for key, mean in means.items():
            hues.setdefault(key[-1:], []).append(mean)
        ends = {key: [min(values), max(values)] for key, values in hues.items()}
    texts = []
    for key, values in ends.items():
        numbers = " to ".join(f"{value:.{metric.digits}f}" for value in values)
        texts.append(f"{', '.join(map(style.value, labels, key))} {numbers}")
    return [f"Means: {'; '.join(texts)}"]
