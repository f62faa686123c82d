"""Series, dashed curves, pooled runs as in a paper's figures, and titles of values and axes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from cohort.results.figures.draw import make_figure
from cohort.results.figures.style import COLORS, OWN, Style
from cohort.results.files import write_metrics

Spec = dict[str, Any]
Metrics = Callable[..., Path]
# AML's script averaged the last accuracies of two different runs: in the authors' logs, 0.2788 for
# Nc = 1 and 0.4403 for IID clients with gamma = 1.
RUNS = {
    "a": ({"series": "Nc = 1", "partition": "sampled-1-2", "strategy": "fedavg"}, [0.1, 0.2788]),
    "b": ({"series": "Nc = 1", "partition": "iid", "strategy": "skewed"}, [0.3, 0.4403]),
    "c": ({"series": "IID", "partition": "iid", "strategy": "fedavg"}, [0.2, 0.4492]),
}
ORDERS = {
    "series": ["IID", "Nc = 1"],
    "partition": ["iid", "sampled-1-2"],
    "strategy": ["fedavg", "skewed"],
    "seed": [0],
}
LOOK = {"orders": ORDERS, "titles": {}}
POOLED = {
    "pooled": ["partition", "strategy"],
    "look": LOOK,
    "metric": "test_accuracy",
    "hue": "series",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [
        {
            "digest": digest,
            "study": "aml",
            "experiment": "main",
            "seed": 0,
            "status": "done",
            **labels,
        }
        | {"metric": "test_accuracy", "round": round, "value": value}
        for digest, (labels, values) in RUNS.items()
        for round, value in zip((1000, 2000), values, strict=True)
    ]
    frame = (
        pd.DataFrame(rows)
        .assign(client=pd.NA)
        .astype({"metric": "string", "round": "Int64", "client": "Int64"})
    )
    write_metrics(tmp_path / "metrics.parquet", frame, {})
    return tmp_path / "metrics.parquet"


def curves(figure: Figure) -> dict[str, Any]:
    return {
        to_hex(line.get_color()).upper(): line
        for line in figure.axes[0].lines
        if len(line.get_xdata()) > 1
    }


def test_bars_as_printed(file: Path) -> None:
    """35.96 with a standard deviation of 11.4 is what the paper's Figure 7 shows for Nc = 1."""
    figure = make_figure(POOLED | {"kind": "bars", "x": "series"}, file)
    (axes,) = figure.axes
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([44.92, (27.88 + 44.03) / 2])
    whisker = axes.lines[-1].get_ydata()
    low, high = np.nanmin(whisker), np.nanmax(whisker)
    assert (high - low) / 2 == pytest.approx((44.03 - 27.88) / 2**0.5)
    assert (
        figure.get_supxlabel().replace("\n", " ")
        == "n = 1 to 2 runs per bar; runs that differ in partition and strategy are averaged; whisker: ± 1 SD over runs"
    )
    assert axes.get_xlabel() == ""


def test_curves_as_printed(file: Path) -> None:
    figure = make_figure(POOLED | {"kind": "curves"}, file)
    np.testing.assert_allclose(curves(figure)[COLORS[1]].get_ydata(), [20, 35.955])
    assert (
        figure.get_supxlabel().replace("\n", " ")
        == "n = 1 to 2 runs per curve; runs that differ in partition and strategy are averaged; band: ± 1 SD over runs"
    )


def test_series_have_colors_in_their_order_and_some_are_dashed(file: Path) -> None:
    figure = make_figure(POOLED | {"kind": "curves", "dashed": ["Nc = 1"]}, file)
    dashed = {color: line.is_dashed() for color, line in curves(figure).items()}
    assert dashed == {COLORS[0]: False, COLORS[1]: True}
    assert [handle.is_dashed() for handle in figure.legends[0].legend_handles] == [False, True]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["IID", "Nc = 1"]


def test_more_names_than_colors_differ_by_dashes() -> None:
    names = [f"schedule {place}" for place in range(len(COLORS) + 1)]
    style = Style(orders={"schedule": names}, titles={}, strategies=[])
    assert list(style.colors("schedule", names).values()) == [*COLORS, COLORS[1]]
    dashes = [style.dash("schedule", name) for name in names]
    assert all(one != other for one, other in itertools.pairwise(dashes))
    assert dashes[1] != dashes[-1]  # the two with one color


def test_titles_of_values(file: Path) -> None:
    titles = {"series": {"Nc = 1": "one class"}, "partition": {"iid": "IID"}}
    figure = make_figure(
        POOLED
        | {"kind": "bars", "x": "series", "hue": "series", "look": LOOK | {"titles": titles}},
        file,
    )
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["IID", "one class"]
    panels = make_figure(
        POOLED
        | {
            "kind": "curves",
            "pooled": ["strategy"],
            "columns": "partition",
            "look": LOOK | {"titles": titles},
        },
        file,
    )
    assert [axes.get_title() for axes in panels.axes] == ["IID", "sampled-1-2"]
    assert [text.get_text() for text in panels.legends[0].get_texts()] == ["IID", "one class"]


def test_the_axis_of_rounds(file: Path, tmp_path: Path) -> None:
    spec = POOLED | {"kind": "curves"}
    assert make_figure(spec, file).axes[0].get_xlabel() == "Round"
    assert (
        make_figure(spec | {"look": LOOK | {"round": "Epoch"}}, file).axes[0].get_xlabel()
        == "Epoch"
    )
    head = "item,source,doubtful,series,other,metric,at,round,value,sd\n"
    (tmp_path / "paper.csv").write_text(
        head
        + "Fig3,printed,,IID,,test_accuracy,,1000,0.5,\nFig3,printed,,IID,,test_accuracy,,2000,0.5,\n"
    )
    figure = make_figure(
        spec | {"paper": "Fig3", "paper_values": str(tmp_path / "paper.csv")}, file
    )
    assert [len(line.get_xdata()) for line in figure.axes[0].lines].count(2) == 3
    assert figure.axes[0].get_xlim()[0] == 0


def test_the_lowest_panel_of_each_column_has_its_axis_named(spec: Spec, metrics: Metrics) -> None:
    """Twelve cells of strategy and J in five panels: three, and two below."""
    frame = pd.read_parquet(metrics())
    places = (
        frame["digest"].map(
            {digest: place for place, digest in enumerate(sorted(frame["digest"].unique()))}
        )
        % 5
    )
    write_metrics(
        file := metrics().parent / "five.parquet", frame.assign(model=places.astype(str)), {}
    )
    figure = make_figure(
        {key: value for key, value in spec.items() if key != "rows"} | {"columns": "model"}, file
    )
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "Round", "Round", "Round"]


def test_an_invented_name_that_is_a_strategys_looks_like_the_strategy() -> None:
    """And a paper's own color is left to its method."""
    titles = {"strategy": {"fednova": "FedNova"}}
    orders = {"series": ["plain", "FedNova", "late", "mine"]}
    names = ["fedavg", "fedprox", "fednova", "mine"]
    style = Style(orders=orders, titles=titles, strategies=names, methods=["mine"])
    shown = style.colors("series", orders["series"])
    for series, strategy in (("FedNova", "fednova"), ("mine", "mine")):
        assert shown[series] == style.colors("strategy", names)[strategy]
        assert style.dash("series", series) == style.dash("strategy", strategy)
    assert [name for name, color in shown.items() if color == OWN] == ["mine"]
    assert len({(color, str(style.dash("series", name))) for name, color in shown.items()}) == 4
