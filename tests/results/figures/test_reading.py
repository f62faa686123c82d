"""What makes a figure readable: bands, many curves, dense points, panels, ticks and names."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from cohort.results.figures.draw import make_figure
from cohort.results.figures.kinds.curves import MOST_POINTS
from cohort.results.figures.style import deviation_limits
from cohort.results.files import write_metrics

Draw = Callable[..., Figure]
NINE = [f"s{number}" for number in range(9)]
LOOK: dict[str, Any] = {
    "orders": {"strategy": NINE, "seed": [0, 1]},
    "strategies": NINE,
    "titles": {},
}


@pytest.fixture
def drawn(tmp_path: Path) -> Draw:
    """Draw runs, each given by its labels and its values by round; the rest is the spec's."""

    def draw(
        runs: Iterable[tuple[dict[str, Any], dict[int, float]]],
        *,
        is_narrow: bool = False,
        **spec: Any,
    ) -> Figure:
        metric = spec.setdefault("metric", "test_accuracy")
        rows = [
            {"digest": f"k{number}", "study": "s", "experiment": "e", "status": "done"}
            | {"strategy": "s0", "seed": 0, "client": None, **labels}
            | {"metric": metric, "round": round, "value": value}
            for number, (labels, values) in enumerate(runs)
            for round, value in (values or {None: None}).items()
        ]
        frame = pd.DataFrame(rows).astype({"metric": "string", "round": "Int64", "client": "Int64"})
        write_metrics(tmp_path / "metrics.parquet", frame, {})
        usual = {"kind": "curves", "study": "s", "experiment": "e", "look": LOOK}
        return make_figure(usual | spec, tmp_path / "metrics.parquet", is_narrow=is_narrow)

    return draw


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


@pytest.mark.parametrize("kind", [{"kind": "curves"}, {"kind": "lines", "x": "cohort"}])
def test_bands_of_shares_end_at_0_and_100(drawn: Draw, kind: dict[str, Any]) -> None:
    shares = {0: [0.0, 1.0], 1: [0.06, 0.94], 2: [0.0, 1.0]}
    runs = [
        ({"seed": seed, "cohort": cohort}, {1: values[0], 2: values[0], 3: values[1]})
        for seed, values in shares.items()
        for cohort in (4, 5)
    ]
    panels = {"columns": "cohort"} if kind["kind"] == "curves" else {}
    (band,) = drawn(runs, **kind, **panels).axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.max() == 100
    assert heights.min() == (0 if kind["kind"] == "curves" else pytest.approx(98 - 12**0.5))


def test_whiskers_of_shares_end_at_100(drawn: Draw) -> None:
    runs = [({"seed": seed}, {1: value}) for seed, value in enumerate([0.94, 1.0, 1.0])]
    axes = drawn(runs, kind="bars", x="strategy").axes[0]
    ends = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines])
    assert (np.nanmin(ends), np.nanmax(ends)) == (pytest.approx(98 - 12**0.5), 100)


def test_nine_curves_look_different_and_only_the_papers_own_has_a_band(drawn: Draw) -> None:
    """The legend keeps the study's order, whichever curve ends highest; s8 is the paper's own."""
    runs = [
        ({"strategy": name}, {1: 0.5 - place / 100, 2: place / 10})
        for place, name in enumerate(NINE)
    ]
    figure = drawn(runs, look=LOOK | {"methods": ["s8"]})
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == NINE
    looks = [(line.get_color(), str(line._dash_pattern)) for line in legend.legend_handles]
    assert len(set(looks)) == 9
    widths = [line.get_linewidth() for line in legend.legend_handles]
    assert widths[8] > max(widths[:8])
    bands = [band.get_facecolor()[0, :3] for band in figure.axes[0].collections]
    np.testing.assert_allclose(bands, [to_rgb(looks[8][0])])


def test_curves_of_numbers_keep_the_studys_order(drawn: Draw) -> None:
    numbers = [({"lr": place / 10}, {1: place / 10}) for place in range(1, 10)]
    legend = drawn(numbers, hue="lr").legends[0]
    names = [f"lr = 0.{place}" for place in range(1, 10)]
    assert [text.get_text() for text in legend.get_texts()] == names


def test_panels_of_a_phone_lie_one_below_the_other(drawn: Draw) -> None:
    """Two data sets and two partitions, of which one combination has no runs: three panels."""
    places = [("iid", "a"), ("iid", "b"), ("dir-0.1", "a"), ("dir-0.1", "b")]
    runs = [({"partition": one, "model": other}, {1: 0.5}) for one, other in places[:3]]
    missing = {"partition": "dir-0.1", "model": "b", "status": "missing"}
    wide, narrow = (
        drawn([*runs, (missing, {})], rows="partition", columns="model", is_narrow=is_narrow)
        for is_narrow in (False, True)
    )
    for figure, columns in ((wide, 2), (narrow, 1)):
        assert len(figure.axes) == 3
        assert {axes.get_gridspec().ncols for axes in figure.axes} == {columns}
        assert "1 panel without runs left out" in figure.texts[-1].get_text().replace("\n", " ")
    assert narrow.get_figwidth() < 4


def test_four_measures_of_four_panels_fit_a_page(drawn: Draw) -> None:
    """A row of four panels for each measure, and two by two if each has a single panel."""
    runs = [({"partition": one, "model": other}, {1: 0.5}) for one in "ab" for other in "cd"]
    also = ["test_loss", "local_accuracy", "holdout_accuracy"]
    for spec, columns in ({"rows": "partition", "columns": "model"}, 4), ({"hue": "model"}, 2):
        figure = drawn(runs, also=also, **spec)
        assert {axes.get_gridspec().ncols for axes in figure.axes} == {columns}
        assert figure.get_figwidth() <= 7.01


def test_points_denser_than_pixels_are_thinned(drawn: Draw) -> None:
    """1,000 rounds, of which 250 can be seen: rounds 4, 8, ... 1000, and 333, where a run ends."""
    curve = {round: round / 1000 for round in range(1, 1001)}
    short = {round: value for round, value in curve.items() if round <= 333}
    diverged = {"seed": 1, "status": "diverged"}
    figure = drawn([({}, curve), (diverged, short)])
    together, alone = (line for line in figure.axes[0].lines if len(line.get_xdata()) > 1)
    assert list(together.get_xdata()) == [*range(4, 333, 4), 333]
    assert list(alone.get_xdata()) == [333, *range(336, 1001, 4)]
    np.testing.assert_allclose(alone.get_ydata(), np.asarray(alone.get_xdata()) / 10)
    assert "one of 4 evaluations is drawn" in figure.get_supxlabel()
    kept = {round: value for round, value in curve.items() if round <= MOST_POINTS}
    figure = drawn([({}, kept)])
    assert len(figure.axes[0].lines[0].get_xdata()) == MOST_POINTS
    assert "is drawn" not in figure.get_supxlabel()


def test_panels_without_planned_cells_are_left_out(drawn: Draw) -> None:
    """Three of four combinations; the lower row begins in the second column."""
    planned = [("iid", "J4"), ("dir-0.1", "J4"), ("iid", "J8")]
    runs = [({"partition": partition, "J": J}, {1: 0.5, 2: 0.6}) for partition, J in planned]
    figure = drawn(runs, columns="partition", rows="J")
    assert sorted(axes.get_title() for axes in figure.axes) == [
        "dir-0.1, J = 4 local steps",
        "iid, J = 4 local steps",
        "iid, J = 8 local steps",
    ]
    labels = {axes.get_title(): sides(axes) for axes in figure.axes}
    assert labels == {
        "dir-0.1, J = 4 local steps": {"left", "bottom"},
        "iid, J = 4 local steps": set(),
        "iid, J = 8 local steps": {"left", "bottom"},
    }


def sides(axes: Any) -> set[str]:
    """The sides of a panel that have tick labels."""
    shown = {
        "left": axes.yaxis.get_tick_params()["labelleft"],
        "bottom": axes.xaxis.get_tick_params()["labelbottom"],
    }
    return {side for side, is_shown in shown.items() if is_shown}


def test_every_panel_of_a_wrapped_grid_has_its_x_axis_labeled(drawn: Draw) -> None:
    """Five panels: three, and two below."""
    runs = [({"model": f"m{place}"}, {1: 0.5, 2: 0.6}) for place in range(5)]
    figure = drawn(runs, columns="model")
    assert [sides(axes) for axes in figure.axes] == [
        {"left", "bottom"},
        {"bottom"},
        {"bottom"},
        {"left", "bottom"},
        {"bottom"},
    ]


@pytest.mark.parametrize("low", [0.098, 0.5, 0.77])
@pytest.mark.parametrize("span", [0.0, 0.0007, 0.011, 0.3])
def test_axes_have_at_least_three_ticks(drawn: Draw, low: float, span: float) -> None:
    """In narrow panels, too."""
    runs = [
        ({"model": f"m{place}"}, {round: low + span * round / 7 for round in range(1, 8)})
        for place in range(4)
    ]
    figure = drawn(runs, columns="model")
    figure.draw_without_rendering()
    for axes in figure.axes:
        for ticks, (least, most) in (
            (axes.get_xticks(), axes.get_xlim()),
            (axes.get_yticks(), axes.get_ylim()),
        ):
            assert sum(least <= tick <= most for tick in ticks) >= 3


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([4, 5, 9], [4, 5, 9]),
        ([10, 30, 50, 100], [10, 30, 50, 100]),
        ([10, 20, 50, 100], [0, 1, 2, 3]),  # the names of the first two would touch
        ([0.01, 0.1, 1, 3], [0, 1, 2, 3]),
        ([100, 250, 500, 1000, 2000], [0, 1, 2, 3, 4]),
    ],
)
def test_names_of_numbers_do_not_overlap(
    drawn: Draw, values: list[float], places: list[float]
) -> None:
    runs = [
        ({"lr": lr, "model": f"m{place}"}, {1: 0.5})
        for lr, place in itertools.product(values, range(4))
    ]
    figure = drawn(runs, kind="lines", x="lr", columns="model")
    assert [list(axes.get_xticks()) for axes in figure.axes] == [places] * 4
    figure.draw_without_rendering()
    labels = figure.axes[0].get_xticklabels()
    boxes = [label.get_window_extent() for label in labels]
    if not labels[0].get_rotation():
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_long_titles_of_y_axes_fit_their_panels(drawn: Draw) -> None:
    """`Transfers of the model between clients` is longer than a small panel is high."""
    runs = [({"partition": name}, {1: 20.0, 2: 30.0}) for name in ("iid", "dir-0.1")]
    spec = {"metric": "model_transfers", "columns": "partition"}
    figure = drawn(runs, **spec, also=["seconds", "bytes_between"])
    figure.draw_without_rendering()
    first = figure.axes[0].yaxis.label
    assert first.get_text().count("\n") == 1
    assert first.get_window_extent().height < figure.bbox.height / 3
