"""Two metrics in one figure: side by side, with their own y axes, each as in its own figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from cohort.core.errors import UserError
from cohort.results.figures.draw import make_figure
from cohort.results.figures.kinds.bars import Bars
from cohort.results.figures.kinds.clients import Shards

Metrics = Callable[..., Path]
Spec = dict[str, Any]


def lines(figure: Figure, label: str) -> list[np.ndarray]:
    """Every line of the panels whose row's y axis is called so."""
    grid = figure.axes
    wide = next(axes.get_gridspec().ncols for axes in grid if axes.get_gridspec() is not None)
    half = [
        axes
        for axes in grid
        if (axes.get_subplotspec().colspan.start >= wide // 2) == (label == "right")
    ]
    return [
        np.asarray(line.get_xydata())
        for axes in half
        for line in axes.lines
        if len(line.get_xdata())
    ]


def test_each_metric_is_drawn_as_in_its_own_figure(spec: Spec, metrics: Metrics) -> None:
    both = make_figure(spec | {"also": ["train_loss"]}, metrics())
    for side, metric in (("left", "test_accuracy"), ("right", "train_loss")):
        alone = make_figure(spec | {"metric": metric}, metrics())
        expected = [
            np.asarray(line.get_xydata())
            for axes in alone.axes
            for line in axes.lines
            if len(line.get_xdata())
        ]
        actual = lines(both, side)
        assert len(actual) == len(expected) > 4
        assert all(
            np.array_equal(a, b, equal_nan=True) for a, b in zip(actual, expected, strict=True)
        )


def test_each_has_its_own_y_axis_and_one_legend(spec: Spec, metrics: Metrics) -> None:
    figure = make_figure(spec | {"also": ["train_loss"], "limits": [0, 100]}, metrics())
    assert len(figure.axes) == 8  # two partitions, two amounts of work, two metrics
    assert {axes.get_ylabel() for axes in figure.axes} == {"Test accuracy (%)", "Training loss", ""}
    assert len({axes.get_ylim() for axes in figure.axes}) == 2
    assert [axes.get_ylim() for axes in figure.axes].count((0.0, 100.0)) == 4
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "FedAvg (random)",
        "Highest loss",
        "FedEntOpt",
    ]


def test_metrics_of_many_panels_stand_one_below_the_other(spec: Spec, metrics: Metrics) -> None:
    spec = {name: value for name, value in spec.items() if name != "rows"}
    figure = make_figure(
        spec | {"columns": "partition", "also": ["train_loss", "test_loss"]}, metrics()
    )
    places = [axes.get_subplotspec() for axes in figure.axes]
    assert [place.rowspan.start for place in places] == [0, 0, 1, 1, 2, 2]
    assert [axes.get_ylabel() for axes in figure.axes[::2]] == [
        "Test accuracy (%)",
        "Training loss",
        "Test loss",
    ]


def test_bars_of_two_metrics(bars: Spec, metrics: Metrics) -> None:
    figure = make_figure(bars | {"also": ["train_loss"]}, metrics())
    assert [len(axes.patches) for axes in figure.axes] == [6] * 4


@pytest.mark.parametrize(
    "kind",
    [Bars(metric="selected", x="client", also=["test_loss"]), Shards(also=["test_loss"])],
    ids=["bars of clients", "shards"],
)
def test_kinds_without_rounds_refuse_a_metric_of_rounds(kind: Any) -> None:
    with pytest.raises(UserError, match=r"cannot show test_loss too"):
        kind.check()
