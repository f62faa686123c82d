"""Curves over what a run has cost so far: time, bytes or local steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from cohort.core.components import parameter
from cohort.core.lazy import lazy
from cohort.results.figures.kind import Averaging
from cohort.results.figures.style import STATISTICS, Style, draw_means
from cohort.results.names import BY_ROUND, METRICS
from cohort.results.series import finite_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from pandas import DataFrame
else:
    pd = lazy("pandas")

POINTS = 200  # along the x axis
PER_ROUND = " per round"  # ends the title of a cost


@dataclass(frozen=True, kw_only=True)
class CostCurves(Averaging):
    """Curves of a metric over a cost: the mean over seeds of the value last measured before a cost
    was spent, with their standard deviation as a band. A curve ends where its cheapest finished run
    does; diverged and unfinished ones keep their last value."""

    name: ClassVar[str] = "cost_curves"
    picture: ClassVar[str] = "Curves"
    mark = "curve"
    status_notes: ClassVar[Mapping[str, str]] = {
        "diverged": "a diverged run keeps its last value",
        "unfinished": "unfinished runs keep theirs so far",
    }

    metric: str = parameter(enum=BY_ROUND, help="what is drawn")
    cost: Literal["simulated_seconds", "bytes_up", "bytes_down", "client_steps", "seconds"] = (
        parameter("simulated_seconds", help="along the x axis, summed over rounds")
    )
    smoothing: int = parameter(
        1, minimum=1, help="mean over so many evaluations, the latest and those before it"
    )

    def metrics(self) -> tuple[str, ...]:
        return (self.metric, self.cost)

    def measure(self, metrics: DataFrame) -> DataFrame:
        """The values of the metric, with the cost until then in the column `spent`."""
        costs = finite_rows(metrics, self.cost).sort_values(["digest", "round"])
        total = costs.groupby("digest")["value"].cumsum() * METRICS[self.cost].scale
        spent = costs[["digest", "round"]].assign(spent=total)
        rows = finite_rows(metrics, self.metric).sort_values(["digest", "round"])
        recent = rows.groupby("digest")["value"].rolling(self.smoothing, min_periods=1).mean()
        values = recent.droplevel(0) * METRICS[self.metric].scale
        rows = rows.assign(value=values)
        return rows.merge(spent, on=["digest", "round"], validate="one_to_one")

    def draw(self, axes: Axes, panel: DataFrame, cells: DataFrame, style: Style) -> None:
        for hue, color, runs in self.runs_by_hue(panel, cells, style):
            statistics, unit = mean_over_cost(runs), METRICS[self.metric].unit
            draw_means(axes, statistics, unit, self.line(hue, style, color))
        self.draw_reference(axes)
        axes.set_xlim(left=0, auto=None)

    def x_title(self, style: Style) -> str:
        metric = METRICS[self.cost]
        title = metric.title.removesuffix(PER_ROUND)
        return f"{title} ({metric.unit})" if metric.unit else title


def mean_over_cost(runs: DataFrame) -> DataFrame:
    """The statistics over runs at costs from the first at which all runs have a value to the last
    that all finished ones reach, or any if none is finished; the costs are the index."""
    curves: list[tuple[np.ndarray, np.ndarray]] = [
        (run["spent"].to_numpy(), run["value"].to_numpy())
        for _, run in runs.sort_values("round").groupby("digest")
    ]
    first = max(spent[0] for spent, _ in curves)
    ends = runs[runs["status"] == "done"].groupby("digest")["spent"].max()
    last = max(first, ends.min() if len(ends) else runs["spent"].max())
    costs = np.linspace(first, last, POINTS)
    values = np.stack(
        [value[np.searchsorted(spent, costs, "right") - 1] for spent, value in curves]
    )
    return pd.DataFrame(values).agg(STATISTICS).T.fillna({"std": 0.0}).set_axis(costs)
