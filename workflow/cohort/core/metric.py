"""Metrics: the title, unit and digits with which a number is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """The title of a metric, and how to show its stored numbers: times `scale`, in `unit`, with
    `digits` decimals in a table.

    A component that measures something declares its metrics in `metrics`, by the name under which
    they are recorded; figures, tables and claims can then use them.
    """

    title: str
    unit: str = ""
    scale: float = 1.0
    digits: int = 3
    better: Literal["high", "low", ""] = ""
    by: Literal["round", "step", "client", "class", "label", "pair"] = "round"
    signed: bool = False

    @property
    def label(self) -> str:
        """The metric's title with its unit, as on an axis."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def clip_interval(self, mean: float, interval: tuple[float, float]) -> tuple[float, float]:
        """Cut an interval around a mean, both as shown, at 0 and 100 % if the mean is a share."""
        if self.unit != "%" or self.signed or not 0 <= mean <= 100:
            return interval
        return max(interval[0], 0.0), min(interval[1], 100.0)
