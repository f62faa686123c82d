"""Bars, profiles of clients and classes, and lines, read from matplotlib's artists."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from cohort.results.figures.draw import make_figure
from cohort.results.figures.kinds.means import Bars, Lines
from cohort.results.figures.theme import COLORS
from tests.results.figures.samples import STRATEGIES, Draw, Metrics, Spec, accuracy, note

SELECTED = {
    ("fedavg", 0): [5.0, 2.0, 9.0],
    ("fedavg", 1): [1.0, 8.0, 4.0],
    ("loss", 0): [7.0, 7.0, 0.0],
}
PROFILE = {"kind": "bars", "x": "client", "metric": "selected", "by": "client"}
CLASSES = PROFILE | {"x": "class", "metric": "class_accuracy", "by": "label"}
HEAD = "item,source,doubtful,{},other,metric,at,round,value,sd\n"


def ends(axes: Axes) -> tuple[float, float]:
    """The lowest and the highest point of all whiskers."""
    heights = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines])
    return np.nanmin(heights), np.nanmax(heights)


def test_bars_are_mean_and_standard_deviation_of_the_last_evaluation(
    bars: Spec, metrics: Metrics
) -> None:
    axes = make_figure(bars, metrics()).axes[1]
    iid = [bar for bar in axes.patches if bar.get_x() > 0.5]
    heights = {to_hex(bar.get_facecolor()).upper(): bar.get_height() for bar in iid}
    last = {strategy: accuracy("iid", "J16", strategy)[:, -1] for strategy in STRATEGIES}
    means = [pytest.approx(values.mean()) for values in last.values()]
    assert heights == dict(zip(COLORS, means, strict=False))
    low, high = last["fedentopt"].mean() + np.array([-1, 1]) * last["fedentopt"].std(ddof=1)
    whisker = np.asarray(axes.lines[-1].get_ydata())
    assert low < 0  # where no accuracy can be
    np.testing.assert_allclose([np.nanmin(whisker), np.nanmax(whisker)], [0, high])
    figure = make_figure(bars | {"also": ["train_loss"]}, metrics())
    assert [len(axes.patches) for axes in figure.axes] == [6] * 4


@pytest.mark.parametrize(
    ("fields", "begun", "is_enough"),
    [
        ({"x": "J"}, [("a", "J4")], False),  # one dot
        ({"x": "J"}, [("a", "J4"), ("a", "J8")], True),
        ({"x": "J"}, [("a", "J4"), ("b", "J8")], False),  # a dot of each color
        ({"x": "J", "hue": "J"}, [("a", "J4"), ("b", "J8")], True),
        ({"x": "partition"}, [("a", "J4")], True),  # all that is planned
        ({"x": "partition"}, [], False),
    ],
)
def test_a_figure_of_single_dots_is_not_worth_drawing(
    fields: Spec, begun: list[tuple[str, str]], is_enough: bool
) -> None:
    cells = [
        {"labels": {"strategy": strategy, "J": J, "partition": "iid"}, "status": status}
        for strategy, J in itertools.product("ab", ("J4", "J8"))
        for status in ["done" if (strategy, J) in begun else "missing"]
    ]
    for kind in (Bars, Lines):
        assert kind(metric="test_accuracy", **fields).has_enough(cells) == is_enough


def test_bars_whose_panels_are_their_colors_stand_alone(bars: Spec, metrics: Metrics) -> None:
    """Each panel has the two bars of its strategy, as wide as those of a figure of one strategy, and there is no legend."""
    figure = make_figure(bars | {"columns": "strategy", "pooled": ["J"]}, metrics())
    widths = [[bar.get_width() for bar in axes.patches if bar.get_height()] for axes in figure.axes]
    assert [len(own) for own in widths] == [2, 2, 2] and not figure.legends
    assert min(min(own) for own in widths) > 0.7


def test_a_bar_has_a_diamond_at_the_papers_value(
    bars: Spec, metrics: Metrics, tmp_path: Path
) -> None:
    rows = "Fig7,printed,,iid,J16,loss,,test_accuracy,last,,0.75,\n"
    rows += "Fig7,printed,,dir-0.1,J16,fedavg,,test_accuracy,max,,0.125,\n"
    (tmp_path / "paper.csv").write_text(HEAD.format("partition,J,strategy") + rows)
    paper = {"paper": "Fig7", "paper_values": str(tmp_path / "paper.csv")}
    figure = make_figure(bars | paper, metrics())
    first, second = ([line for line in ax.lines if line.get_marker() == "D"] for ax in figure.axes)
    assert first == []
    (x,), (y,) = second[0].get_data()
    bar = figure.axes[1].patches[3]  # of the second strategy and partition, by strategy first
    assert y == 75 and len(second) == 1 and x == pytest.approx(bar.get_x() + bar.get_width() / 2)
    assert figure.legends[0].get_texts()[-1].get_text() == "paper"


# AML's script averaged the last accuracies of two different runs: in the authors' logs, 0.2788 for
# Nc = 1 and 0.4403 for IID clients with gamma = 1.
MIXED = [
    ({"series": "Nc = 1", "partition": "sampled-1-2", "strategy": "fedavg"}, {1: 0.1, 2: 0.2788}),
    ({"series": "Nc = 1", "partition": "iid", "strategy": "skewed"}, {1: 0.3, 2: 0.4403}),
    ({"series": "IID", "partition": "iid", "strategy": "fedavg"}, {1: 0.2, 2: 0.4492}),
]
POOLED = {"pooled": ["partition", "strategy"], "hue": "series"}


def test_different_runs_are_averaged_as_printed(drawn: Draw) -> None:
    """35.96 with a standard deviation of 11.4 is what the paper's Figure 7 shows for Nc = 1."""
    figure = drawn(MIXED, kind="bars", x="series", **POOLED)
    (axes,) = figure.axes
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == pytest.approx([44.92, (27.88 + 44.03) / 2])
    low, high = ends(axes)
    assert (high - low) / 2 == pytest.approx((44.03 - 27.88) / 2**0.5)
    remark = "runs that differ in partition and strategy are averaged"
    assert note(figure) == f"n = 1 to 2 runs per bar; {remark}; whisker: ± 1 SD over runs"
    assert axes.get_xlabel() == ""
    figure = drawn(MIXED, **POOLED)
    assert note(figure) == f"n = 1 to 2 runs per curve; {remark}; band: ± 1 SD over runs"
    np.testing.assert_allclose(figure.axes[0].lines[-2].get_ydata(), [20, 35.955])


def profiles(values: dict[tuple[str, int], list[float]]) -> Any:
    """Runs with a value for each client or class, the last one first."""
    return [
        ({"strategy": name, "seed": seed}, dict(reversed(list(enumerate(run)))))
        for (name, seed), run in values.items()
    ]


def outlines(figure: Figure) -> list[list[float]]:
    """The heights of each profile's outline; every other patch is a band."""
    return [list(patch.get_data().values) for patch in figure.axes[0].patches][::2]


def test_clients_are_sorted_within_each_run_or_are_those_of_the_first_seed(drawn: Draw) -> None:
    """Fedavg's runs are (9, 5, 2) and (8, 4, 1)."""
    figure = drawn(profiles(SELECTED), **PROFILE)
    assert outlines(figure) == [[8.5, 4.5, 1.5], [7, 7, 0]]
    assert list(figure.axes[0].patches[0].get_data().edges) == [0.5, 1.5, 2.5, 3.5]
    assert figure.axes[0].get_xlabel() == "Clients, highest first"
    assert note(figure) == "n = 1 to 2 seeds per profile; band: ± 1 SD over seeds"
    solid, dashed = figure.legends[0].legend_handles
    assert not solid.is_dashed() and dashed.is_dashed()
    figure = drawn(profiles(SELECTED), order="number", **PROFILE)
    assert outlines(figure) == [[5, 2, 9], [7, 7, 0]]
    assert figure.axes[0].get_xlabel() == "Client"
    assert note(figure) == "n = 1 seed per profile"
    gap = drawn(profiles({("fedavg", 0): [5, math.nan, 9]}), order="number", **PROFILE)
    np.testing.assert_equal(outlines(gap), [[5, math.nan, 9]])


@pytest.mark.parametrize(
    ("order", "title"), [("number", "Class"), ("value", "Classes, highest first")]
)
def test_classes_are_the_same_in_every_run(drawn: Draw, order: str, title: str) -> None:
    runs = profiles({("fedavg", 0): [0.5, 0.25], ("fedavg", 1): [1.0, 0.75]})
    figure = drawn(runs, order=order, **CLASSES)
    (axes,) = figure.axes
    assert outlines(figure) == [[75, 50]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (title, "Class accuracy (%)")
    band = axes.patches[-1].get_data()
    np.testing.assert_allclose(band.values, [100, 50 + 25 * 2**0.5])  # not 75 + 35 %


def grid(status: str = "done") -> Any:
    """Runs of 4, 5 and 9 clients whose mean over the last ten rounds is cohort + seed + 5.5;
    `status` is that of 9 clients with seed 1."""
    runs = []
    for strategy, cohort, seed in itertools.product(("fedavg", "loss"), (4, 5, 9), (0, 1)):
        labels = {"strategy": strategy, "cohort": cohort, "seed": seed, "classes": 10}
        labels["status"] = status if (cohort, seed) == (9, 1) else "done"
        values = {round: (cohort + seed + round - 90) / 100 for round in (50, 91, 100)}
        runs.append((labels, values))
    return runs


LINES = {"kind": "lines", "x": "cohort", "at": "last-10"}


def test_numbers_are_placed_at_their_values(drawn: Draw) -> None:
    (axes,) = drawn(grid(), **LINES).axes
    line = next(line for line in axes.lines if len(line.get_xdata()) == 3)
    assert list(line.get_xdata()) == [4, 5, 9]
    assert list(line.get_ydata()) == pytest.approx([10, 11, 15])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["4", "5", "9"]
    assert axes.get_xlabel() == "Clients in a round"
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert [heights.min(), heights.max()] == pytest.approx([10 - 0.5**0.5, 15 + 0.5**0.5])


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([10, 30, 50, 90], [10, 30, 50, 90]),
        ([10, 20, 50, 90], [0, 1, 2, 3]),  # the names of the first two would touch
        ([0.01, 0.1, 1, 10], [-2, -1, 0, 1]),  # logarithms
        ([100, 110, 500, 1000, 2000], [0, 1, 2, 3, 4]),
    ],
)
def test_names_of_numbers_do_not_overlap(
    drawn: Draw, values: list[float], places: list[float]
) -> None:
    models = [f"m{number}" for number in range(4)]
    runs = [({"lr": lr, "model": name}, {1: 0.5}) for lr, name in itertools.product(values, models)]
    figure = drawn(runs, kind="lines", x="lr", columns="model")
    assert [list(axes.get_xticks()) for axes in figure.axes] == [places] * 4
    figure.draw_without_rendering()
    labels = figure.axes[0].get_xticklabels()
    boxes = [label.get_window_extent() for label in labels]
    if not labels[0].get_rotation():
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_diverged_runs_are_crossed(drawn: Draw) -> None:
    figure = drawn(grid("diverged"), **LINES)
    crosses = [line for line in figure.axes[0].lines if line.get_marker() == "x"]
    assert [list(line.get_xdata()) for line in crosses] == [[9], [9]]
    assert ": a run diverged" in note(figure)


@pytest.mark.parametrize(
    ("errors", "ours", "printed", "title"),
    [(False, 15, 65.25, "Test accuracy (%)"), (True, 85, 34.75, "Test error (%)")],
)
def test_a_papers_values_are_diamonds(
    drawn: Draw, tmp_path: Path, errors: bool, ours: float, printed: float, title: str
) -> None:
    row = "TableI,printed,,9,loss,,test_accuracy,last-10,,0.6525,\n"
    (tmp_path / "paper.csv").write_text(HEAD.format("cohort,strategy") + row)
    paper = {"paper": "TableI", "paper_values": str(tmp_path / "paper.csv")}
    (axes,) = drawn(grid(), errors=errors, **LINES, **paper).axes
    diamonds = [line for line in axes.lines if line.get_marker() == "D" and len(line.get_xdata())]
    (diamond,) = diamonds
    assert (list(diamond.get_xdata()), list(diamond.get_ydata())) == ([9], [printed])
    assert diamond.get_color() == COLORS[1] and axes.get_ylabel() == title
    assert next(line for line in axes.lines).get_ydata()[-1] == pytest.approx(ours)


@pytest.mark.parametrize("fields", [LINES, {"hue": "cohort", "columns": "strategy"}])
def test_the_reference_line(drawn: Draw, fields: Spec) -> None:
    for axes in drawn(grid(), reference=12.5, reference_label="here", **fields).axes:
        (line,) = [line for line in axes.lines if line.get_label() == "here"]
        assert list(line.get_ydata()) == [12.5, 12.5]
    figure = drawn(grid(), reference=12.5, reference_label="here", also=["test_loss"], **fields)
    shown = [line for axes in figure.axes for line in axes.lines if line.get_label() == "here"]
    assert len(shown) == len(figure.axes) / 2, "it is in the unit of the first metric"
