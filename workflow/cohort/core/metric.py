"""Metrics: the title, unit and digits with which a number is shown."""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

NAME = re.compile("[a-z][a-z0-9_]*")  # the form of a metric's name
ROUNDING = 1e-9  # by which a sum of shares may exceed 1


@dataclass(frozen=True)
class Metric:
    """The title of a metric, and how to show its stored numbers: times `scale`, in `unit`, with
    `digits` decimals in a table. Components declare theirs in `metrics`, by the recorded name.
    Values are from 0 up, and shares (in %, or `normalized`) at most 1, unless `signed`. Those that
    are `whole` have no fractions. In a run that does not diverge they are finite, unless `partial`:
    a round may have none."""

    title: str
    unit: str = ""
    scale: float = 1.0
    digits: int = 3
    better: Literal["high", "low", ""] = ""
    by: Literal["round", "step", "client", "class", "label", "pair"] = "round"
    normalized: bool = False
    signed: bool = False
    whole: bool = False
    partial: bool = False

    @property
    def label(self) -> str:
        """The metric's title with its unit, as on an axis."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def highest(self) -> float:
        """The largest value that can be recorded."""
        is_share = (self.unit == "%" or self.normalized) and not self.signed
        return 1.0 if is_share else np.inf

    def is_plausible(self, values: np.ndarray, *, diverged: bool = False) -> np.ndarray:
        """Boolean mask: which values a run can have recorded for this metric."""
        lowest, highest = -np.inf if self.signed else 0.0, self.highest + ROUNDING
        may_lack = (self.partial or diverged) and not self.whole
        possible = (lowest <= values) & (values <= highest) & (np.isfinite(values) | may_lack)
        if self.whole:
            possible &= values == np.rint(values)
        return possible | (np.isnan(values) & may_lack)

    def clip_interval(self, mean: float, interval: tuple[float, float]) -> tuple[float, float]:
        """Cut an interval around a mean, both as shown, at 0, and at 1 or 100 % for a share."""
        if self.signed or mean < 0:
            return interval
        highest = self.highest * self.scale
        return max(interval[0], 0.0), min(interval[1], highest if mean <= highest else np.inf)
