"""The scaling figure: panels with logarithmic axes, styled like the pipeline's figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from cohort.results.figures.style import COLORS, PAGE_WIDTH, apply_theme

HEIGHT = 2.3  # inches
MARKERS = "os^D"


@dataclass(frozen=True)
class Curve:
    """A named series of (x, y) points."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One pair of axes and its curves."""

    x_title: str
    y_title: str
    curves: Sequence[Curve]


def draw(panels: Sequence[Panel], file: Path) -> None:
    """Draw the panels side by side; curves of the same name share a color and a legend entry."""
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    with rc_context():
        apply_theme()
        figure = Figure(figsize=(PAGE_WIDTH, HEIGHT), layout="constrained")
        FigureCanvasAgg(figure)
        handles = {}
        for axes, panel in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            for curve in (curve for curve in panel.curves if curve.points):
                index = names.index(curve.name)
                x, y = zip(*curve.points, strict=True)
                (handles[curve.name],) = axes.plot(
                    x, y, color=COLORS[index], marker=MARKERS[index], markersize=3.5
                )
            axes.set(xscale="log", yscale="log", xlabel=panel.x_title, ylabel=panel.y_title)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(LogLocator(subs=(1, 3), numticks=20))
                axis.set_major_formatter(FuncFormatter(lambda value, index: f"{value:,g}"))
                axis.set_minor_locator(NullLocator())
        figure.legend(
            list(handles.values()), list(handles), loc="outside upper center", ncols=len(handles)
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file)
