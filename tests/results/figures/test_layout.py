"""Where panels lie, what their axes are called, and how strategies look."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from cohort.results.figures.draw import make_figure
from cohort.results.figures.theme import DASHES, METHOD_COLOR, Style, deviation_limits
from tests.results.figures.samples import NAMES, Draw, Metrics, Spec


def models(count: int) -> Any:
    return [({"model": f"m{number}"}, {1: 0.5, 2: 0.6}) for number in range(count)]


def sides(axes: Any) -> set[str]:
    """The sides of a panel that have tick labels."""
    left, bottom = axes.yaxis.get_tick_params(), axes.xaxis.get_tick_params()
    shown = {"left": left["labelleft"], "bottom": bottom["labelbottom"]}
    return {side for side, is_shown in shown.items() if is_shown}


def lines(axes: Any) -> list[list[list[float]]]:
    return [np.asarray(line.get_xydata()).tolist() for line in axes.lines if len(line.get_xdata())]


def test_panels_without_planned_cells_are_left_out(drawn: Draw) -> None:
    """Three of four combinations, which stand in one row."""
    planned = [("iid", "J4"), ("dir-0.1", "J4"), ("iid", "J8")]
    runs = [({"partition": partition, "J": J}, {1: 0.5, 2: 0.6}) for partition, J in planned]
    orders = {"strategy": ["s0"], "partition": ["dir-0.1", "iid"], "J": ["J4", "J8"]}
    figure = drawn(runs, columns="partition", rows="J", style={"orders": orders})
    assert {axes.get_title(): sides(axes) for axes in figure.axes} == {
        "dir-0.1, J = 4 local steps": {"left", "bottom"},
        "iid, J = 4 local steps": {"bottom"},
        "iid, J = 8 local steps": {"bottom"},
    }


def test_every_panel_of_a_wrapped_grid_has_its_x_axis_labeled(drawn: Draw) -> None:
    """Five panels: three, and two below."""
    figure = drawn(models(5), columns="model")
    both, below = {"left", "bottom"}, {"bottom"}
    assert [sides(axes) for axes in figure.axes] == [both, below, below, both, below]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "Round", "Round", "Round"]


@pytest.mark.parametrize("low", [0.098, 0.5, 0.77])
@pytest.mark.parametrize("span", [0.0, 0.0007, 0.3])
def test_axes_have_at_least_three_ticks(drawn: Draw, low: float, span: float) -> None:
    """In narrow panels, too."""
    values = {round: low + span * round / 7 for round in range(1, 8)}
    figure = drawn([(labels, values) for labels, _ in models(4)], columns="model")
    figure.draw_without_rendering()
    for axes in figure.axes:
        for axis, (least, most) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            assert sum(least <= tick <= most for tick in axis.get_ticklocs()) >= 3


def test_each_metric_is_drawn_as_in_its_own_figure(spec: Spec, metrics: Metrics) -> None:
    """Side by side, with y axes of their own and one legend; limits are those of the first."""
    joint = make_figure(spec | {"also": ["train_loss"], "limits": [0, 100]}, metrics())
    first = [
        make_figure(spec | {"metric": name}, metrics()) for name in ("test_accuracy", "train_loss")
    ]
    alone = [lines(axes) for figure in first for axes in figure.axes]
    assert sorted(map(str, map(lines, joint.axes))) == sorted(map(str, alone))
    assert {axes.get_ylabel() for axes in joint.axes} == {"Test accuracy (%)", "Training loss", ""}
    limits = [axes.get_ylim() for axes in joint.axes]
    assert len(set(limits)) == 2 and limits.count((0.0, 100.0)) == 4
    assert [text.get_text() for text in joint.legends[0].get_texts()] == NAMES


@pytest.mark.parametrize(
    ("spec", "width", "panels"),
    [
        ({"rows": "partition", "columns": "model"}, 4, 16),  # a row of four for each metric
        ({"hue": "model", "pooled": ["partition"]}, 2, 4),  # two by two single panels
    ],
)
def test_four_measures_fit_a_page(drawn: Draw, spec: Spec, width: int, panels: int) -> None:
    runs = [({"partition": name, "model": model}, {1: 0.5}) for name in "ab" for model in "cd"]
    figure = drawn(runs, also=["test_loss", "local_accuracy", "holdout_accuracy"], **spec)
    assert {axes.get_gridspec().ncols for axes in figure.axes} == {width}
    assert len(figure.axes) == panels
    assert figure.get_figwidth() <= 7.01


@pytest.mark.parametrize(
    ("values", "unit", "limits"),
    [
        ([96.0, 98.0, 100.0], "%", (96, 100)),  # the mean is 98, the deviation 2
        ([0.0, 0.0, 6.0], "%", (0, 2 + 12**0.5)),  # 2 and sqrt(12): from -1.46
        ([94.0, 100.0, 100.0], "%", (98 - 12**0.5, 100)),  # to 101.46
        ([0.0, 0.0, 6.0], "", (0, 2 + 12**0.5)),  # no count is negative
        ([-6.0, 0.0, 0.0], "%", (-2 - 12**0.5, -2 + 12**0.5)),  # a share that can be negative
        ([94.0, 100.0, 100.0], "s", (98 - 12**0.5, 98 + 12**0.5)),
    ],
)
def test_deviations_stay_where_values_can_be(
    values: list[float], unit: str, limits: tuple[float, float]
) -> None:
    points = pd.Series(values).agg(["mean", "std", "min", "max"])
    assert deviation_limits(points, unit) == pytest.approx(limits)


def test_all_strategies_look_different_and_a_papers_own_like_no_other() -> None:
    """Sixteen strategies, of which the paper proposes one, or none."""
    names = ["fedavg", *(f"strategy {number}" for number in range(15))]
    for own in ([], ["strategy 7"]):
        style = Style(orders={}, titles={}, strategies=names, methods=own)
        colors = style.colors("strategy", names)
        dashes = {name: style.look("strategy", name, DASHES) for name in names}
        assert len({(colors[name], str(dashes[name])) for name in names}) == 16
        assert [name for name in names if dashes[name] == "-"] == (own or ["fedavg"])
        for name in ("fedavg", *own):
            assert [other for other in names if colors[other] == colors[name]] == [name]


def test_an_invented_name_that_is_a_strategys_looks_like_the_strategy() -> None:
    """And a paper's own color is left to its method."""
    titles = {"strategy": {"fednova": "FedNova"}}
    orders = {"series": ["plain", "FedNova", "late", "mine"]}
    names = ["fedavg", "fedprox", "fednova", "mine"]
    style = Style(orders=orders, titles=titles, strategies=names, methods=["mine"])
    shown = style.colors("series", orders["series"])
    for series, strategy in (("FedNova", "fednova"), ("mine", "mine")):
        assert shown[series] == style.colors("strategy", names)[strategy]
        assert style.look("series", series, DASHES) == style.look("strategy", strategy, DASHES)
    assert [name for name, color in shown.items() if color == METHOD_COLOR] == ["mine"]
    assert (
        len({(color, str(style.look("series", name, DASHES))) for name, color in shown.items()})
        == 4
    )


def test_a_metric_without_values_above_one_that_has_some(drawn: Draw) -> None:
    runs = [({"metric": "test_accuracy"}, {1: 0.5, 2: 0.6})]
    empty, full = drawn(runs, metric="holdout_accuracy", also=["test_accuracy"]).axes
    assert not len(empty.get_yticks()) and len(full.get_xticks()) > 1 and lines(full)
