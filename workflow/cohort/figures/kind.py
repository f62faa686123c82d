"""What a kind of figure is: its fields are what a study may say of a figure, its methods draw it panel by panel.

sheet.py makes the panels, the legend and the note, so a kind only measures and paints.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from cohort.core.components import Component, parameter
from cohort.metrics.names import BY_ROUND, METRICS

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from cohort.figures.look import Look
    from cohort.metrics.paper_match import Beside


@dataclass(frozen=True, kw_only=True)
class Kind(Component):
    """Base of every kind of figure. Every kind also has a field `metric`, whose choice depends on the kind."""

    shared_y: ClassVar[bool | Literal["row"]] = (
        True  # whether all panels have one y axis, or those of a row
    )

    metric: str
    hue: str = parameter("strategy", help="the label whose values have colors of their own")
    also: str = parameter(
        "",
        enum=["", *BY_ROUND],
        help="a second metric, whose panels lie to the right of the first one's",
    )
    columns: str | None = parameter(None, help="the label whose values lie side by side as panels")
    rows: str | None = parameter(
        None, help="the label whose values lie one below the other as panels"
    )
    limits: list[float] | None = parameter(
        None,
        items={"type": "number"},
        minItems=2,
        maxItems=2,
        help="lowest and highest value of the y axis, in its unit",
    )

    def check(self) -> None:
        """Raise UserError when the fields do not fit together."""

    def parts(self) -> list[Kind]:
        """The figure's metrics, each as a figure of its own; the limits are those of the first."""
        return [
            self,
            *(
                [dataclasses.replace(self, metric=self.also, also="", limits=None)]
                if self.also
                else []
            ),
        ]

    def panels(self) -> tuple[str, ...]:
        """The labels that make the panels."""
        return tuple(dict.fromkeys(label for label in (self.rows, self.columns) if label))

    def facets(self) -> tuple[str, ...]:
        """The labels that make the panels and the hue."""
        return tuple(dict.fromkeys((*self.panels(), self.hue)))

    def shown(self) -> tuple[str, ...]:
        """Every label that the figure keeps apart."""
        return self.facets()

    def ignores(self, label: str) -> bool:
        """Whether cells that differ in nothing but this label look alike in the figure."""
        return label in self.averaged()

    def averaged(self) -> Sequence[str]:
        """The labels over which it averages besides the seeds, because the study asks for it."""
        return ()

    def named(self) -> Mapping[str, Sequence[str]]:
        """The values of labels that its fields name, by label."""
        return {}

    def metrics(self) -> tuple[str, ...]:
        """Every metric that must be read for a part of the figure."""
        return (self.metric,)

    def measure(self, metrics: DataFrame) -> DataFrame:
        """What is drawn: rows with digest, labels, status and value in the unit of the axis."""
        raise NotImplementedError

    def paint(self, axes: Axes, panel: DataFrame, cells: DataFrame, look: Look) -> None:
        """Draw the measured rows of one panel; `cells` are all planned cells of the figure."""
        raise NotImplementedError

    def paint_paper(self, axes: Axes, beside: list[Beside], cells: DataFrame, look: Look) -> None:
        """Draw the paper's values over one panel, where the kind takes an item of a paper."""

    def x_title(self, look: Look) -> str:
        """What the x axis is called."""
        raise NotImplementedError

    def y_title(self) -> str:
        """What the y axis is called."""
        return METRICS[self.metric].label

    def handle(self, value: str, look: Look, color: str) -> Artist:
        """What stands for a hue in the legend."""
        raise NotImplementedError

    def remarks(self, statuses: set[str]) -> list[str]:
        """What the note must explain when runs have diverged or are unfinished."""
        raise NotImplementedError

    def mark(self) -> str:
        """What one mean is drawn as, as the note calls it."""
        raise NotImplementedError

    def keyed(self) -> bool:
        """Whether the figure needs a legend."""
        return True


@dataclass(frozen=True, kw_only=True)
class Averaging(Kind):
    """Base of the kinds that average runs: the seeds always, runs that differ in more only where the study says so."""

    pooled: list[str] | None = parameter(
        None,
        items={"type": "string"},
        minItems=1,
        help="labels whose runs are averaged too, as a paper did that mixed them",
    )
    reference: float | None = parameter(
        None, help="where to draw a thin dashed horizontal line, in the unit of the axis"
    )
    reference_label: str = parameter("", help="what that line is called")

    def parts(self) -> list[Kind]:
        return [
            self,
            *(
                [dataclasses.replace(self, metric=self.also, also="", limits=None, reference=None)]
                if self.also
                else []
            ),
        ]

    def refer(self, axes: Axes) -> None:
        """Draw the line of reference, if there is one."""
        if self.reference is not None:
            axes.axhline(
                self.reference,
                color="#333333",
                linestyle=(0, (4, 2)),
                linewidth=0.8,
                label=self.reference_label,
            )

    def averaged(self) -> Sequence[str]:
        return self.pooled or ()
