"""The base of every kind of figure: what a study can set, and how one panel is measured and drawn.
`draw.py` lays out the panels, the legend and the note."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cohort.core.components import parameter
from cohort.core.lazy import lazy
from cohort.results import statistics
from cohort.results.comparison import Item, Measure
from cohort.results.figures import theme
from cohort.results.figures.theme import Style
from cohort.results.names import BY_ROUND, CLIENT, METRICS, listed, word
from cohort.results.paper import PaperMatch
from cohort.results.series import label_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

mpl = lazy("matplotlib")
TEXTS: dict[str, Any] = {"items": {"type": "string"}, "minItems": 1}
PAIR: dict[str, Any] = {"items": {"type": "number"}, "minItems": 2, "maxItems": 2}
FALLBACK = "test_accuracy"  # what runs are compared by where a figure shows no metric by round


def also_parameter(metrics: Sequence[str]) -> Any:
    """The parameter `also` of a kind that can show these metrics."""
    where = "further metrics, whose panels are to the right of the first one's, or below"
    return parameter(None, items={"enum": [*metrics]}, minItems=1, uniqueItems=True, help=where)


@dataclass(frozen=True, kw_only=True)
class Kind(Item):
    """Base of every kind of figure. Each kind narrows which metrics its field `metric` allows."""

    # What the note says of unfinished and of diverged runs, if there are any.
    status_notes: ClassVar[Mapping[str, str]] = {}
    # Whether the panels share one y axis.
    shared_y: ClassVar[bool] = True
    # The height of a panel: a share of its width, and at most so many inches.
    height: ClassVar[tuple[float, float]] = (theme.HEIGHT, theme.MAX_HEIGHT)

    metric: str
    hue: str = parameter("strategy", help="the label whose values have colors of their own")
    also: list[str] | None = also_parameter(BY_ROUND)
    columns: str | None = parameter(None, help="the label whose values are panels side by side")
    rows: str | None = parameter(None, help="the label whose values are panels one below the other")
    without: dict[str, Any] | None = parameter(None, minProperties=1, help=statistics.WITHOUT_HELP)
    limits: list[float] | None = parameter(
        None, help="lowest and highest value of the y axis, in its unit", **PAIR
    )

    def mentioned_values(self) -> Mapping[str, Sequence[str]]:
        return statistics.values_left_out(self.without)

    def panel_size(self, width: float, hues: int) -> tuple[float, float]:
        """The width and height in inches of a panel that may be at most this wide."""
        share, max_height = self.height
        width = min(theme.MAX_WIDTH, width)
        return width, min(max_height, max(theme.MIN_HEIGHT, width * share))

    def by_metric(self) -> list[Kind]:
        """Split the figure into one per metric, `metric` first, to be drawn side by side."""
        return [self, *map(self.with_metric, self.also or ())]

    def with_metric(self, metric: str) -> Self:
        """A copy of the figure for a further metric, without `limits`."""
        return replace(self, metric=metric, also=None, limits=None)

    def can_draw(self, cells: Iterable[Mapping[str, Any]]) -> bool:
        """Whether the cells that the figure shows, out of an experiment's, have enough runs."""
        for label, values in statistics.values_left_out(self.without).items():
            cells = [cell for cell in cells if label_text(cell["labels"].get(label)) not in values]
        return self.has_enough(cells)

    def has_enough(self, cells: Iterable[Mapping[str, Any]]) -> bool:
        """Whether these planned cells, as `collect` describes them, have runs enough to draw."""
        return any(cell["status"] != "missing" for cell in cells)

    def panels(self) -> tuple[str, ...]:
        """The labels whose values make the panels."""
        return tuple(dict.fromkeys(label for label in (self.rows, self.columns) if label))

    def facets(self) -> tuple[str, ...]:
        """The labels whose values make the panels and the colors."""
        return tuple(dict.fromkeys((*self.panels(), self.hue)))

    def labels(self) -> tuple[str, ...]:
        return self.facets()

    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics to read for one part of the figure."""
        return (self.metric,)

    def measures(self) -> list[Measure]:
        """The measures that compare its runs: its metrics by round, or each strategy's accuracy."""
        at, paper = getattr(self, "at", ""), getattr(self, "paper", "")
        metrics = [part.metric for part in self.by_metric() if METRICS[part.metric].by == "round"]
        labels = tuple(label for label in self.labels() if label not in (CLIENT, "class", "seed"))
        labels = labels if metrics else tuple(dict.fromkeys([*labels, "strategy"]))
        fields: dict[str, Any] = {"at": at or "last", "labels": labels, "paper": paper}
        fields |= {"curves": not at, "left_out": statistics.values_left_out(self.without)}
        return [Measure(metric=metric, **fields) for metric in metrics or [FALLBACK]]

    def measure(self, metrics: DataFrame) -> DataFrame:
        """The rows to draw: digest, labels, status, and the value in the unit of the y axis."""
        raise NotImplementedError

    def draw(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        """Draw the measured rows of one panel."""
        raise NotImplementedError

    def draw_paper(self, axes: Axes, matches: Sequence[PaperMatch], style: Style) -> None:
        """Draw a paper's values over one panel; only kinds with a field `paper` need this."""

    def annotate(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        """Write into a panel whose axes have their limits."""

    def x_title(self, style: Style) -> str:
        """The title of the x axis."""
        raise NotImplementedError

    def y_title(self) -> str:
        """The title of the y axis, with its unit."""
        return METRICS[self.metric].label

    def colors(self, style: Style) -> dict[str, Any]:
        """The color of each value of the hue, in the study's order."""
        return style.colors(self.hue, style.shown_values[self.hue])

    def runs_by_hue(self, panel: DataFrame, style: Style) -> Iterator[tuple[str, Any, DataFrame]]:
        """The value, color and measured rows of each value of the hue that has rows."""
        for value, color in self.colors(style).items():
            runs = panel[panel[self.hue] == value]
            if len(runs):
                yield value, color, runs

    def line_props(self, value: str, style: Style, color: str) -> dict[str, Any]:
        """How the line of a value of the hue looks, as matplotlib's properties."""
        return {"color": color, "linestyle": style.look(self.hue, value, theme.DASHES)}

    def handle(self, value: str, style: Style, color: str) -> Any:
        """The legend's handle for a value of the hue in this color."""
        return mpl.lines.Line2D([], [], **self.line_props(value, style, color))

    def runs_note(self, measured: DataFrame) -> str:
        """Text for the note below the figure: how many runs each mark has once all are done."""
        seeds = measured.groupby(list(self.labels()))["digest"].nunique()
        noun = "run" if getattr(self, "pooled", None) else "seed"
        plural = "" if seeds.max() == 1 else "s"
        return f"n = {theme.span(seeds)} {noun}{plural} per {self.mark_noun}"

    def remarks(self, measured: DataFrame, style: Style) -> list[str]:
        """Texts for the note that explain the measured rows (diverged or unfinished runs, ...)."""
        statuses = set(measured["status"])
        return [text for status, text in self.status_notes.items() if status in statuses]

    @property
    def mark_noun(self) -> str:
        """The noun for what shows one mean, for the note: `curve`, `bar`, `point`, ..."""
        raise NotImplementedError

    @property
    def has_legend(self) -> bool:
        """Whether the hues need a legend."""
        return True


@dataclass(frozen=True, kw_only=True)
class Averaging(Kind):
    """Base of the kinds that average over seeds, and over further labels if the study says so."""

    status_notes: ClassVar[Mapping[str, str]] = {
        "unfinished": "unfinished runs included",
        "diverged": f"{theme.CROSS}: a run diverged",
    }

    pooled: list[str] | None = parameter(
        None, help="labels to average over, as a paper did", **TEXTS
    )
    reference: float | None = parameter(
        None, help="where to draw a dashed line, in the axis's unit"
    )
    reference_label: str = parameter("", help="what the legend calls that line")

    def with_metric(self, metric: str) -> Self:
        return replace(super().with_metric(metric), reference=None)

    def ignores(self, label: str) -> bool:
        return label in (self.pooled or ())

    def remarks(self, measured: DataFrame, style: Style) -> list[str]:
        """What is averaged, and what shows the standard deviation, if anything does."""
        pooled = listed(list(map(word, self.pooled or [""])))
        notes = [f"runs that differ in {pooled} are averaged"] if pooled else []
        runs = measured.groupby(list(self.labels()))["digest"].nunique()
        if (runs > 1).any():
            drawn = self.deviation if self.has_deviations(style) else "means"
            notes.append(f"{drawn} over {'runs' if pooled else 'seeds'}")
        return [*notes, *super().remarks(measured, style)]

    def has_deviations(self, style: Style) -> bool:
        """Whether the standard deviations are drawn."""
        return True

    @property
    def deviation(self) -> str:
        """What shows how much runs differ, and by what."""
        return "band: ± 1 SD"

    def draw_reference(self, axes: Axes) -> None:
        """Draw the reference line, if the study sets one."""
        if self.reference is not None:
            props = theme.PAPER_LINE | {"color": "#333333", "label": self.reference_label}
            axes.axhline(self.reference, **props)
