"""Profiles of clients and classes: their order, and whether they are bars or outlines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from cohort.core.errors import UserError
from cohort.results.figures.draw import make_figure
from cohort.results.figures.kinds.bars import Bars
from cohort.results.figures.style import COLORS
from cohort.results.files import write_metrics

Spec = dict[str, Any]
LABELS = {
    "study": "demo",
    "experiment": "main",
    "dataset": "digits",
    "partition": "iid",
    "status": "done",
}
SELECTED = {
    ("fedavg", 0): [5.0, 2.0, 9.0],
    ("fedavg", 1): [1.0, 8.0, 4.0],
    ("loss", 0): [7.0, 7.0, 0.0],
}
BY_CLASS = {("fedavg", 0): [0.5, 0.25], ("fedavg", 1): [1.0, 0.75]}


def table(values: dict[tuple[str, int], list[float]], metric: str, column: str) -> pd.DataFrame:
    """A row for each client or class of each strategy and seed, the last one first."""
    rows = [
        LABELS
        | {
            "digest": f"{strategy}{seed}",
            "strategy": strategy,
            "seed": seed,
            "metric": metric,
            column: number,
            "value": value,
        }
        for (strategy, seed), run in values.items()
        for number, value in reversed(list(enumerate(run)))
    ]
    numbers = dict.fromkeys(["round", "client", "label"], pd.NA)
    frame = pd.DataFrame([numbers | row for row in rows])
    return frame.astype({"metric": "string", "round": "Int64", "client": "Int64", "label": "Int64"})


def drawn(tmp_path: Path, frame: pd.DataFrame, **changes: Any) -> Any:
    write_metrics(tmp_path / "metrics.parquet", frame, {})
    strategies = list(dict.fromkeys(frame["strategy"]))
    look = {
        "orders": {"strategy": strategies, "seed": [0, 1]},
        "strategies": ["fedavg", *"abcdef", "loss"],
        "titles": {},
    }
    return make_figure(
        {"kind": "bars", "look": look, "metric": "selected", "x": "client"} | changes,
        tmp_path / "metrics.parquet",
    )


def heights(axes: Axes) -> list[tuple[float, float]]:
    """The middle and the height of every bar."""
    return [
        (bar.get_x() + bar.get_width() / 2, bar.get_height())
        for bar in axes.patches
        if isinstance(bar, Rectangle)
    ]


def of(strategy: str) -> dict[tuple[str, int], list[float]]:
    return {run: values for run, values in SELECTED.items() if run[0] == strategy}


def test_one_hue_has_bars_of_the_sorted_means(tmp_path: Path) -> None:
    figure = drawn(tmp_path, table(of("fedavg"), "selected", "client"))
    (axes,) = figure.axes
    assert heights(axes) == [
        (1, pytest.approx(8.5)),
        (2, pytest.approx(4.5)),
        (3, pytest.approx(1.5)),
    ]  # (9, 5, 2) and (8, 4, 1)
    assert axes.get_xlabel() == "Clients, highest first"
    assert figure.get_supxlabel() == "n = 2 seeds per profile; band: ± 1 SD over seeds"
    (handle,) = figure.legends[0].legend_handles
    assert (
        isinstance(handle, Patch)
        and to_hex(handle.get_facecolor()).upper() == COLORS[0]
        and not handle.get_hatch()
    )


def test_numbered_clients_are_those_of_the_first_seed(tmp_path: Path) -> None:
    figure = drawn(tmp_path, table(of("fedavg"), "selected", "client"), order="number")
    assert heights(figure.axes[0]) == [(0, 5), (1, 2), (2, 9)]
    assert figure.axes[0].get_xlabel() == "Client"
    assert figure.get_supxlabel() == "n = 1 seed per profile"


def test_several_hues_have_outlines(tmp_path: Path) -> None:
    figure = drawn(tmp_path, table(SELECTED, "selected", "client"), order="number")
    outlines = [patch.get_data() for patch in figure.axes[0].patches][
        ::2
    ]  # every second one is a band
    assert [list(outline.values) for outline in outlines] == [[5, 2, 9], [7, 7, 0]]
    assert list(outlines[0].edges) == [-0.5, 0.5, 1.5, 2.5]
    solid, dashed = figure.legends[0].legend_handles
    assert isinstance(solid, Line2D) and not solid.is_dashed() and dashed.is_dashed()


def test_classes_are_the_same_in_every_run(tmp_path: Path) -> None:
    figure = drawn(
        tmp_path,
        table(BY_CLASS, "class_accuracy", "label"),
        metric="class_accuracy",
        x="class",
        order="number",
    )
    (axes,) = figure.axes
    assert heights(axes) == [(0, pytest.approx(75)), (1, pytest.approx(50))]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Class", "Class accuracy (%)")
    band = axes.patches[-1].get_data()
    np.testing.assert_allclose(band.values, [100, 50 + 25 * 2**0.5])  # not 75 + 35 %
    assert drawn(
        tmp_path, table(BY_CLASS, "class_accuracy", "label"), metric="class_accuracy", x="class"
    ).axes[0].get_xlabel() == ("Classes, highest first")


def test_clients_beside_classes(tmp_path: Path) -> None:
    """Each metric over what it is of, on axes of its own."""
    tables = [
        table(of("fedavg"), "selected", "client"),
        table(BY_CLASS, "class_accuracy", "label"),
    ]
    changes = {"order": "number", "also": ["class_accuracy"]}
    left, right = drawn(tmp_path, pd.concat(tables, ignore_index=True), **changes).axes
    assert heights(left) == [(0, 5), (1, 2), (2, 9)]
    assert heights(right) == [(0, pytest.approx(75)), (1, pytest.approx(50))]
    assert [left.get_xlabel(), right.get_xlabel()] == ["Client", "Class"]
    assert left.get_xlim() != right.get_xlim()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"x": "class", "metric": "selected"},
            "bars over x: class cannot show selected; choose one of class_accuracy",
        ),
        (
            {"x": "client", "metric": "class_accuracy"},
            "bars over x: client cannot show class_accuracy; choose one of ",
        ),
        ({"x": "J", "metric": "class_accuracy"}, "bars over x: J cannot show class_accuracy"),
        (
            {"x": "class", "metric": "class_accuracy", "also": ["test_loss"]},
            "cannot show test_loss too",
        ),
        ({"x": "class", "metric": "class_accuracy", "paper": "Fig12"}, "leave paper out"),
        (
            {"x": "J", "metric": "test_loss", "order": "number"},
            "bars over x: J are in the study's order; leave out order: number",
        ),
    ],
)
def test_fields_that_contradict_each_other(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        Bars(**fields).check()
    assert sentence in str(error.value)
