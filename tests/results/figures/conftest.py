from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from cohort.results.figures.draw import make_figure
from cohort.results.series import write_metrics
from tests.results.figures.samples import STYLE, Fate, Runs, frame_of, sample


@pytest.fixture
def metrics(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes the sample metrics, perhaps with shuffled rows, and returns the file's path."""

    def write(fate: Fate | None = None, shuffle: int | None = None) -> Path:
        frame = sample(fate)
        file = tmp_path / f"metrics-{shuffle}.parquet"
        shuffled = frame if shuffle is None else frame.sample(frac=1, random_state=shuffle)
        write_metrics(file, shuffled, {})
        return file

    return write


@pytest.fixture
def drawn(tmp_path: Path) -> Callable[..., Figure]:
    """Return a function that draws runs, each given by its labels and its values by round, client
    or label; the rest is the spec's. Strategies are in the order of their runs."""

    def draw(runs: Runs, *, by: str = "round", style: Any = None, **spec: Any) -> Figure:
        metric, rows, strategies = spec.setdefault("metric", "test_accuracy"), [], []
        for number, (labels, values) in enumerate(runs):
            head = {"digest": f"k{number}", "strategy": "s0", "seed": 0, "metric": metric} | labels
            strategies += [head["strategy"]] if head["strategy"] not in strategies else []
            rows += [head | {by: key, "value": value} for key, value in values.items()]
            rows += [] if values else [head | {"metric": None}]
        write_metrics(tmp_path / "runs.parquet", frame_of(rows), {})
        defaults = {"orders": {"strategy": strategies, "seed": [0, 1]}, "strategies": strategies}
        spec = {"kind": "curves", "style": defaults | (style or {})} | spec
        return make_figure(spec, tmp_path / "runs.parquet")

    return draw


@pytest.fixture
def spec() -> dict[str, Any]:
    """Learning curves of every strategy, a panel for each partition and J."""
    return {
        "kind": "curves", "study": "demo", "experiment": "main", "title": "Costs $5 & <more>", "caption": "", "style": STYLE,
        "metric": "test_accuracy", "columns": "partition", "rows": "J",
    }  # fmt: skip


@pytest.fixture
def bars(spec: dict[str, Any]) -> dict[str, Any]:
    """The final accuracy of every strategy over the partitions."""
    shared = {key: value for key, value in spec.items() if key not in ("columns", "rows")}
    return shared | {"kind": "bars", "x": "partition", "columns": "J"}
