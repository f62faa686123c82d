"""One value of each run as bars: the mean of the seeds, their standard deviation as a whisker; or one value of each client or class."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.figures.kind import Averaging
from cohort.figures.kinds.profile import MANY, PROFILES, paint_profile, placed
from cohort.figures.look import CROSS, LETTER, PAPER_LINE, panel_width, paper_name
from cohort.metrics.names import BY_CLASS, BY_CLIENT, BY_ROUND, METRICS, SERIES
from cohort.metrics.summary import At, finite_rows, value_per_cell

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from cohort.figures.look import Look
    from cohort.metrics.paper_match import Beside

PAPER_TICK = "#000000"  # lies over bars of any color
GROUP = 0.8  # of the distance between two places is taken by bars


@dataclass(frozen=True, kw_only=True)
class Bars(Averaging):
    """Grouped bars over the values of a label, or, with `x: client` or `x: class`, those of each run from the highest value to the lowest.

    They are sorted within each run before the runs are averaged: which client is number 7 differs from seed to seed, how uneven the
    clients are does not. So with `order: number` clients are those of the first seed alone; classes are the same in every run.
    With several hues the bars of many clients would be thinner than a line, so that only their outlines are drawn.
    """

    name: ClassVar[str] = "bars"

    metric: str = parameter(enum=[*BY_ROUND, *BY_CLIENT, *BY_CLASS], help="what is drawn")
    at: At = parameter(
        "last",
        help="the last evaluation, the highest, the lowest, the mean, or the mean of the last ten rounds",
    )
    x: str = parameter(help="the label along the x axis, or client, or class")
    order: Literal["value", "number"] = parameter(
        "value", help="how clients or classes lie: the highest value first, or by number"
    )
    paper: str = parameter(
        "",
        help="the item whose values are drawn over the bars, as resources/paper_values/{study}.csv calls it",
    )

    def check(self) -> None:
        allowed = PROFILES.get(self.x, BY_ROUND)
        if self.metric not in allowed:
            raise UserError(
                f"bars over x: {self.x} cannot show {self.metric}; choose one of {', '.join(allowed)}"
            )
        if self.also and self._is_profile():
            raise UserError(
                f"bars over x: {self.x} cannot have {self.also} beside them, which is of a whole run; leave out also"
            )
        if self.paper and self._is_profile():
            raise UserError(
                f"bars over x: {self.x} cannot show a paper's values, which are of a whole run; leave paper out"
            )
        if self.order != "value" and not self._is_profile():
            raise UserError(
                f"bars over x: {self.x} lie as the study lists them; leave out order: {self.order}"
            )

    def shown(self) -> tuple[str, ...]:
        return (
            self.facets() if self._is_profile() else tuple(dict.fromkeys([*self.facets(), self.x]))
        )

    def measure(self, metrics: DataFrame) -> DataFrame:
        if self._is_profile():
            rows = placed(finite_rows(metrics, self.metric), self.x, self.order, self.facets())
        else:
            rows = value_per_cell(metrics, self.metric, self.at).dropna(subset="value")
        return rows.assign(value=rows["value"] * METRICS[self.metric].scale)

    def _is_profile(self) -> bool:
        return self.x in PROFILES

    def _is_filled(self, look: Look) -> bool:
        """Whether there is room for the bars of a profile: one hue."""
        return len(look.orders.get(self.hue, [])) == 1

    def paint(self, axes: Axes, panel: DataFrame, cells: DataFrame, look: Look) -> None:
        hues = look.ordered(self.hue, cells[self.hue])
        colors = look.colors(self.hue, hues)
        if self._is_profile():
            for hue in hues:
                paint_profile(
                    axes,
                    panel[panel[self.hue] == hue],
                    colors[hue],
                    look.dash(self.hue, hue),
                    filled=self._is_filled(look),
                )
            axes.margins(x=0)
            axes.locator_params(axis="x", integer=True)
            axes.axhline(0, linewidth=0).sticky_edges.y.append(0)
        else:
            self._groups(axes, panel, cells, look, colors)
        self.refer(axes)

    def _groups(
        self, axes: Axes, panel: DataFrame, cells: DataFrame, look: Look, colors: dict[str, str]
    ) -> None:
        places, width = self._places(cells, look)
        for (x, hue), center in places.items():
            runs = panel[(panel[self.x] == x) & (panel[self.hue] == hue)]
            if len(runs):
                self._bar(axes, runs, center, width, colors[hue], look, look.hatch(self.hue, hue))
        self._ticks(axes, [look.value(self.x, x) for x in look.ordered(self.x, cells[self.x])])

    def _places(self, cells: DataFrame, look: Look) -> tuple[dict[tuple[str, str], float], float]:
        """Where the middle of each bar lies, by its value along the axis and its hue, and how wide a bar is."""
        hues = look.ordered(self.hue, cells[self.hue])
        width = GROUP / (1 if self.x == self.hue else len(hues))
        places: dict[tuple[str, str], float] = {}
        for place, x in enumerate(look.ordered(self.x, cells[self.x])):
            side_by_side = [x] if self.x == self.hue else hues
            places |= {
                (x, hue): place + (slot - (len(side_by_side) - 1) / 2) * width
                for slot, hue in enumerate(side_by_side)
            }
        return places, width

    def paint_paper(self, axes: Axes, beside: list[Beside], cells: DataFrame, look: Look) -> None:
        places, width = self._places(cells, look)
        for one in beside:
            value, center = one.values[0], places[one.labels[self.x], one.labels[self.hue]]
            ends = [center - width / 2, center + width / 2]
            axes.plot(
                ends,
                [value.value * METRICS[self.metric].scale] * 2,
                color=PAPER_TICK,
                label=paper_name(value.source),
                **PAPER_LINE,
            )

    def _ticks(self, axes: Axes, names: list[str]) -> None:
        room = int(panel_width(axes) / len(names) / LETTER)
        wrapped = [fill(name, max(room, 1), break_long_words=False) for name in names]
        if max(len(line) for name in wrapped for line in name.splitlines()) > room:
            axes.set_xticks(
                range(len(names)), names, rotation=25, ha="right", rotation_mode="anchor"
            )
        else:
            axes.set_xticks(range(len(names)), wrapped)
        axes.tick_params(axis="x", length=0)
        axes.grid(visible=False, axis="x")
        axes.set_xlim(-0.5, len(names) - 0.5)

    def _bar(
        self,
        axes: Axes,
        runs: DataFrame,
        center: float,
        width: float,
        color: Any,
        look: Look,
        hatch: str,
    ) -> None:
        mean, statuses = runs["value"].mean(), set(runs["status"])
        whisker = runs["value"].std() if len(runs) > 1 else None
        shade = look.pale(color) if "unfinished" in statuses else color
        axes.bar(
            center,
            mean,
            width * 0.94,
            color=shade,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            yerr=whisker,
            error_kw={
                "elinewidth": 0.8,
                "capsize": min(2.0, 20 * width),
                "capthick": 0.8,
                "ecolor": "#333333",
            },
        )
        if "diverged" in statuses:
            axes.annotate(
                CROSS,
                (center, mean + (whisker or 0)),
                (0, 1.5),
                textcoords="offset points",
                ha="center",
                color=color,
                fontsize=8,
            )

    def x_title(self, look: Look) -> str:
        if self.x == SERIES:
            return ""  # its names speak for themselves
        if not self._is_profile():
            return look.title(self.x)
        return look.title(self.x) if self.order == "number" else f"{MANY[self.x]}, highest first"

    def handle(self, value: str, look: Look, color: str) -> Artist:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        if self._is_profile():
            outline = Line2D([], [], color=color, linestyle=look.dash(self.hue, value))
            return Patch(facecolor=color) if self._is_filled(look) else outline
        return Patch(
            facecolor=color, hatch=look.hatch(self.hue, value), edgecolor="white", linewidth=0
        )

    def remarks(self, statuses: set[str]) -> list[str]:
        crosses = (
            [f"{CROSS}: a run diverged"]
            if "diverged" in statuses and not self._is_profile()
            else []
        )
        return [*crosses, *(["pale: with unfinished runs"] if "unfinished" in statuses else [])]

    def mark(self) -> str:
        return "profile" if self._is_profile() else "bar"

    def keyed(self) -> bool:
        return self.x != self.hue
