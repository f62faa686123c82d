"""A study as it was expanded at a scale: what planning hands on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cohort.plan.expand import Values


@dataclass(frozen=True)
class Row:
    """One cell of an experiment, with its labels as the study names them."""

    labels: Values
    digest: str


@dataclass(frozen=True)
class Experiment:
    """The cells of an experiment, in order, and the values of its axes."""

    rows: list[Row]
    axes: dict[str, list[Any]]


@dataclass(frozen=True)
class Study:
    """A study at a scale."""

    name: str
    title: str
    description: str
    experiments: dict[str, Experiment]
    figures: dict[str, Values]
    tables: dict[str, Values]
    titles: dict[str, dict[str, str]]
    claims: dict[str, Values]

    def strategies(self, experiments: Iterable[str]) -> list[str]:
        """The strategies of some of its experiments."""
        return list(
            dict.fromkeys(
                name
                for experiment in experiments
                for name in self.experiments[experiment].axes["strategy"]
            )
        )

    def drawn(self) -> dict[str, Values]:
        """Its figures and tables by name."""
        return self.figures | self.tables

    def claimed(self) -> list[str]:
        """The experiments that its claims are about."""
        points = (
            point
            for spec in self.claims.values()
            for one in spec["comparisons"]
            for point in one["points"]
        )
        return list(
            dict.fromkeys(
                point["experiment"] for point in points if point["experiment"] in self.experiments
            )
        )
