"""The kinds of figures a study can ask for; modules in `kinds/` define them.

Planning imports this package, so its modules load pandas, matplotlib and seaborn lazily.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cohort.core.components import Catalog
from cohort.results.figures.kind import Kind
from cohort.results.figures.kinds.bars import Bars, Lines
from cohort.results.figures.kinds.clients import Scatter, Shards
from cohort.results.figures.kinds.curves import CostCurves, Curves
from cohort.results.figures.kinds.interval import Interval
from cohort.results.names import METRICS, Names

if TYPE_CHECKING:
    from cohort.results.comparison import Comparison

KINDS = Catalog(
    "cohort.results.figures.kinds",
    Kind,
    (Bars, CostCurves, Curves, Interval, Lines, Scatter, Shards),
)
MOST_MEANS = 12  # that an alternative text lists

__all__ = ["KINDS", "Kind", "alternative_text"]


def alternative_text(spec: Mapping[str, Any], comparison: Comparison) -> str:
    """A picture's alternative text: its title and what the comparison says, or else the mean of
    each curve or bar; where these are many, of each hue over all panels."""
    kind, names = KINDS[spec["kind"]].from_spec(spec), Names.of(spec["look"])
    results = [result for result in comparison.results if result.metric == kind.metric]
    texts = [str(spec["title"]).rstrip("."), *comparison.description]
    for labels in (kind.facets(), (kind.hue,)) if not comparison.description else ():
        groups: dict[str, list[float]] = {}
        for result in results:
            words = (names.value(key, result.labels[key]) for key in labels if key in result.labels)
            groups.setdefault(", ".join(words), []).extend(result.values.values())
        metric = METRICS[kind.metric]
        means = [
            f"{name} {metric.scale * sum(values) / len(values):.{metric.digits}f}"
            for name, values in groups.items()
            if values
        ]
        if 0 < len(means) <= MOST_MEANS:
            texts.append(f"Means of {metric.label}: {'; '.join(means)}")
            break
    return ". ".join(texts) + "."
