"""Critical-difference diagrams: mean ranks over settings, and which of them do not differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.results.across import Scores
from cohort.results.figures.across import AcrossSettings
from cohort.results.figures.style import Style, grid_cell, say
from cohort.results.intervals import ALPHA
from cohort.results.names import METRICS, Names
from cohort.results.ranks import FEWEST_SETTINGS, FEWEST_STRATEGIES, Ranking, ranking

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

INK: dict[str, Any] = {"color": "#333333", "linewidth": 0.8}
THICK: dict[str, Any] = {"color": "#333333", "linewidth": 3, "solid_capstyle": "butt"}
WIDTH, ROW, FRAME = 4.6, 0.17, 0.75  # inches
CROWDED = 12  # ranks above which only every other one has its number
TOP, GAP = 1.1, 0.55  # rows: from the axis up to the critical difference, and between two groups
TOO_FEW = f"fewer than {FEWEST_STRATEGIES} strategies or {FEWEST_SETTINGS} settings"


@dataclass(frozen=True, kw_only=True)
class CriticalDifference(AcrossSettings):
    """The mean rank of each strategy over settings, by its mean over seeds, with the critical
    difference of Nemenyi's test; a thick line joins strategies that it does not tell apart."""

    name: ClassVar[str] = "critical_difference"
    picture: ClassVar[str] = "A diagram"

    def panel_size(self, width: float, hues: int) -> tuple[float, float]:
        rows = TOP + 1 + _rows(hues) + GAP * min(hues / 2, 4)
        if width < WIDTH:
            return width, FRAME + ROW * (TOP + 1 + hues)
        return WIDTH, FRAME + ROW * rows

    def draw_scores(self, axes: Axes, scores: Scores, style: Style) -> None:
        ranked = ranking(scores)
        if ranked is None:
            say(axes, TOO_FEW)
            return
        if grid_cell(axes)[0] < WIDTH - 0.1:
            self._draw_down(axes, ranked, style)
            return
        count = len(ranked.ranks)
        axes.plot([1, count], [0, 0], **INK)
        for rank in range(1, count + 1):
            axes.plot([rank, rank], [0, -0.25], **INK)
            if count <= CROWDED or rank % 2:
                axes.text(rank, -0.35, str(rank), ha="center", va="bottom", fontsize=7)
        self._draw_difference(axes, ranked)
        for row, group in enumerate(ranked.groups):
            ends = ranked.ranks[group[0]] - 0.04, ranked.ranks[group[-1]] + 0.04
            axes.plot(ends, [GAP * (row + 1)] * 2, **THICK)
        below = GAP * (len(ranked.groups) + 1) + 0.4
        self._draw_names(axes, ranked.ranks, below, style)
        axes.set_xlim(0.7, count + 0.3)
        axes.set_ylim(below + _rows(count) - 0.4, -TOP - 1)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)

    def _draw_down(self, axes: Axes, ranked: Ranking, style: Style) -> None:
        """Draw the strategies one below the other, where there is no room for names at both sides:
        a point at the mean rank of each, and the thick lines at the right."""
        count, names = len(ranked.ranks), list(ranked.ranks)
        colors = style.colors(self.hue, names)
        for row, (name, rank) in enumerate(ranked.ranks.items()):
            axes.plot([rank], [row], "o", color=colors[name], markersize=4)
        for column, group in enumerate(ranked.groups, start=1):
            ends = names.index(group[0]) - 0.3, names.index(group[-1]) + 0.3
            axes.plot([count + column * count / 20] * 2, ends, **THICK)
        self._draw_difference(axes, ranked)
        ranks = [
            f"{style.value(self.hue, name)}  {rank:.2f}" for name, rank in ranked.ranks.items()
        ]
        axes.set_yticks(range(count), ranks)
        axes.set_ylim(count - 0.5, -TOP - 1)
        axes.tick_params(axis="y", length=0)
        axes.set_xticks(range(1, count + 1, 1 + count // CROWDED * 3))
        axes.grid(visible=False)

    def _draw_difference(self, axes: Axes, ranked: Ranking) -> None:
        """Draw the critical difference above the axis; one that is longer is cut there, without an
        end, and has its number above."""
        end, last, height = 1 + ranked.difference, len(ranked.ranks) + 0.3, -TOP - 0.3
        axes.plot([1, min(end, last)], [height, height], **INK)
        for x in (1, end)[: 1 + (end <= last)]:
            axes.plot([x, x], [height - 0.2, height + 0.2], **INK)
        text = f"critical difference {ranked.difference:.2f}"
        look: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7}
        if end <= last:
            axes.annotate(text, (end, height), (4, 0), va="center", **look)
        else:
            axes.annotate(text, (last, height), (0, 2), ha="right", va="bottom", **look)

    def _draw_names(self, axes: Axes, ranks: dict[str, float], below: float, style: Style) -> None:
        """Write the better half at the left and the others at the right, joined to their ranks."""
        names, count = list(ranks), len(ranks)
        colors = style.colors(self.hue, names)
        half = _rows(count)
        left, right = list(enumerate(names[:half])), list(enumerate(reversed(names[half:])))
        for side, rows in ((0.7, left), (count + 0.3, right)):
            for row, name in rows:
                rank, y = ranks[name], below + row
                axes.plot([rank, rank, side], [0, y, y], color=colors[name], linewidth=1)
                parts = [style.value(self.hue, name), f"{rank:.2f}"]
                text = "  ".join(parts if side < 1 else reversed(parts))
                axes.annotate(
                    text,
                    (side, y),
                    (-4 if side < 1 else 4, 0),
                    textcoords="offset points",
                    ha="right" if side < 1 else "left",
                    va="center",
                    fontsize=7.5,
                )

    def describe_scores(self, scores: Scores, names: Names) -> str:
        ranked = ranking(scores)
        if ranked is None:
            return TOO_FEW
        ranks = [f"{names.value(self.hue, name)} {rank:.2f}" for name, rank in ranked.ranks.items()]
        groups = []
        for group in ranked.groups:
            members = ", ".join(names.value(self.hue, name) for name in group)
            groups.append(f"not told apart: {members}")
        tests = f"critical difference {ranked.difference:.2f}, Friedman's {_p_value(ranked)}"
        return "; ".join(["Mean ranks: " + ", ".join(ranks), tests, *groups])

    def subject(self) -> str:
        return f"mean ranks by {METRICS[self.metric].title.lower()}"

    def x_title(self, style: Style) -> str:
        return f"Mean rank by {METRICS[self.metric].title.lower()};\n1 is the best"

    def remarks(self, measured: DataFrame) -> list[str]:
        scores = [self.scores(panel, Names()) for _, panel in self._panels(measured)]
        rankings = [ranked for ranked in map(ranking, scores) if ranked is not None]
        p_values = ", ".join(map(_p_value, rankings)).replace(" ", "\N{NO-BREAK SPACE}")
        remarks = [f"Friedman's test {p_values}"] if rankings else []
        if any(ranked.groups for ranked in rankings):
            remarks.append(
                "thick lines join what Nemenyi's test does not tell apart (5\N{NO-BREAK SPACE}%)"
            )
        if any(ranked.p_value > ALPHA for ranked in rankings):
            remarks.append("above 0.05 nothing is told apart")
        return [*super().remarks(measured), *remarks]


def _p_value(ranked: Ranking) -> str:
    return "p < 0.001" if ranked.p_value < 0.001 else f"p = {ranked.p_value:.2g}"


def _rows(strategies: int) -> int:
    """The number of names that are written one below the other."""
    return -(-strategies // 2)
