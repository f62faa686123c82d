"""What figures and tables have in common: they show runs, which are compared by measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cohort.core.components import Component
from cohort.results.names import GAIN, METRICS
from cohort.results.paper import Cell, PaperMatch, match_values, read_paper

BASELINE = "fedavg"  # the strategy that all others are compared with
CLIENT = "client"
"""The label of results that are clients' and not runs'."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A quantity by which runs are compared: the value of a metric `at` a round or range of rounds
    of each run, by the labels that tell results apart.

    `paper` names the items of the paper that hold its values: single ones, or the last points of
    `curves`. `minus` maps values of a label to those whose results are subtracted. Results
    `over_settings` have runs that differ in more than their seed, so that nothing is said of the
    differences between them. Runs with a value of a label that is `left_out` do not count.
    """

    metric: str
    at: int | str
    labels: tuple[str, ...]
    paper: str = ""
    curves: bool = False
    over_settings: bool = False
    minus: Mapping[str, Mapping[str, str]] | None = None
    left_out: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def shown_metric(self) -> str:
        """The metric of the results: the gain in `metric` if others are subtracted."""
        return self.metric + GAIN if self.minus else self.metric

    @property
    def better(self) -> str:
        """Which results are better: `high`, `low`, or neither."""
        return "" if self.over_settings else METRICS[self.shown_metric].better

    def matches(
        self, file: str | Path, cells: Iterable[Cell], labels: Iterable[str]
    ) -> list[PaperMatch]:
        """Match the paper's values in a file with each combination of the measure's labels: one
        value, or those of a curve. `labels` are all that the cells have."""
        values = read_paper(file, self.paper, self.shown_metric)
        at = "" if self.curves else str(self.at)
        return match_values(values, cells, self.labels, labels, at=at)


@dataclass(frozen=True, kw_only=True)
class Item(Component):
    """Base of the kinds of figures and tables that show runs."""

    def check(self) -> None:
        """Raise UserError when the fields contradict each other."""

    def check_cells(self, axes: Iterable[str], cells: Iterable[Mapping[str, Any]]) -> None:
        """Raise UserError when an experiment with these axes and cells cannot be shown so."""

    def shown(self) -> tuple[str, ...]:
        """Every label by which the item distinguishes runs."""
        raise NotImplementedError

    def ignores(self, label: str) -> bool:
        """Whether runs that differ only in this label may be shown as one."""
        return False

    def named(self) -> Mapping[str, Sequence[str]]:
        """The label values that the item's fields mention, by label, for planning to check."""
        return {}

    def measures(self) -> list[Measure]:
        """The measures by which the item's results are compared."""
        raise NotImplementedError
