"""What is written down round by round while a cell trains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

Series = dict[str, list[tuple[int, float]]]


@dataclass
class History:
    """Metrics and costs as (round, value) pairs, the cohort of every round, and whom a selector probed: the pool of every round and how far
    each of its models moved."""

    metrics: Series = field(default_factory=lambda: defaultdict(list))
    cost: Series = field(default_factory=lambda: defaultdict(list))
    cohorts: list[np.ndarray] = field(default_factory=list)
    pools: list[np.ndarray] = field(default_factory=list)
    norms: list[np.ndarray] = field(default_factory=list)

    def add(self, round: int, **values: float) -> None:
        """Write down metrics of a round."""
        for name, value in values.items():
            self.metrics[name].append((round, float(value)))

    def add_cost(self, round: int, **values: float) -> None:
        """Write down what a round cost."""
        for name, value in values.items():
            self.cost[name].append((round, float(value)))

    def last(self, name: str) -> float:
        """The latest value of a metric, NaN where there is none yet."""
        return self.metrics[name][-1][1] if self.metrics.get(name) else float("nan")

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything as plain arrays, by path: `metrics/test_accuracy/round`, `cohorts`, ..."""
        found = {"cohorts": np.array(self.cohorts, dtype=np.int64)}
        if self.pools:
            found |= {
                "probes/pools": np.array(self.pools, dtype=np.int64),
                "probes/norms": np.array(self.norms, dtype=np.float64),
            }
        for group in ("metrics", "cost"):
            for name, pairs in getattr(self, group).items():
                found[f"{group}/{name}/round"] = np.array(
                    [round for round, _ in pairs], dtype=np.int64
                )
                found[f"{group}/{name}/value"] = np.array(
                    [value for _, value in pairs], dtype=np.float64
                )
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> History:
        """The history that `arrays` was made from."""
        pools, norms = (list(arrays.get(f"probes/{name}", ())) for name in ("pools", "norms"))
        history = cls(cohorts=list(arrays["cohorts"]), pools=pools, norms=norms)
        for path in arrays:
            if path.endswith("/round"):
                group, name, _ = path.split("/")
                rounds, values = arrays[path].tolist(), arrays[f"{group}/{name}/value"].tolist()
                getattr(history, group)[name] = list(zip(rounds, values, strict=True))
        return history
