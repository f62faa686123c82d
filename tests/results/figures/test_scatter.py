"""Scatter plots of clients; rank correlations are computed by hand and by scipy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from scipy import stats

from cohort.core.errors import UserError
from cohort.results.figures.draw import make_figure
from cohort.results.figures.kinds.clients import Scatter, correlation
from cohort.results.figures.style import COLORS
from cohort.results.files import write_metrics

HELD = {("fedavg", 0): [1, 2, 3, 4], ("fedavg", 1): [4, 3, 2, 1], ("loss", 0): [1, 2, 3, 4]}
NORMS = {
    ("fedavg", 0): [0.1, 0.2, 0.4, 0.3],
    ("fedavg", 1): [0.5, 0.6, 0.7, 0.8],
    ("loss", 0): [0.4, 0.3, 0.2, 0.1],
}


def table(*, leave_out: set[tuple[str, int, str]] = frozenset()) -> pd.DataFrame:  # type: ignore[assignment]
    rows: list[dict[str, Any]] = []
    for metric, values in (("classes_held", HELD), ("accuracy", NORMS)):
        for (strategy, seed), run in values.items():
            cell = {
                "study": "demo",
                "experiment": "main",
                "dataset": "digits",
                "strategy": strategy,
                "seed": seed,
                "status": "done",
            }
            for client, value in enumerate(run):
                if (strategy, client, metric) not in leave_out:
                    rows.append(
                        cell
                        | {
                            "digest": f"{strategy}{seed}",
                            "metric": metric,
                            "client": client,
                            "value": float(value),
                        }
                    )
    frame = pd.DataFrame(rows).assign(round=pd.NA, label=pd.NA)
    return frame.astype({"metric": "string", "round": "Int64", "client": "Int64", "label": "Int64"})


def drawn(tmp_path: Path, frame: pd.DataFrame, **changes: Any) -> Any:
    write_metrics(tmp_path / "metrics.parquet", frame, {})
    look = {
        "orders": {"strategy": ["fedavg", "loss"], "seed": [0, 1]},
        "strategies": ["fedavg", "loss"],
        "titles": {},
    }
    spec = {"kind": "scatter", "look": look, "metric": "accuracy", "x": "classes_held"}
    return make_figure(spec | changes, tmp_path / "metrics.parquet")


def clouds(axes: Axes) -> list[np.ndarray]:
    """The points of each strategy, distinguished by their color."""
    (points,) = axes.collections
    colors = np.array([to_hex(color).upper() for color in points.get_facecolors()])
    places = np.asarray(points.get_offsets())
    return [places[colors == color] for color in COLORS[:2]]


def test_every_client_of_every_run_is_a_point(tmp_path: Path) -> None:
    (axes,) = drawn(tmp_path, table()).axes
    first, second = clouds(axes)
    assert sorted(map(tuple, first.round(6))) == [
        (1, 10),
        (1, 80),
        (2, 20),
        (2, 70),
        (3, 40),
        (3, 60),
        (4, 30),
        (4, 50),
    ]
    assert sorted(map(tuple, second.round(6))) == [(1, 40), (2, 30), (3, 20), (4, 10)]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Classes held", "Client accuracy (%)")


def test_the_correlation_of_each_color(tmp_path: Path) -> None:
    figure = drawn(tmp_path, table())
    both = stats.spearmanr(
        [*HELD["fedavg", 0], *HELD["fedavg", 1]], [*NORMS["fedavg", 0], *NORMS["fedavg", 1]]
    ).statistic
    said = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert said == [f"ρ = {both:.2f}".replace("-", "−"), "ρ = −1.00"]
    assert "ρ: Spearman's rank correlation of the points" in figure.get_supxlabel().replace(
        "\n", " "
    )
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["fedavg", "loss"]


def test_each_panel_has_its_own_correlations(tmp_path: Path) -> None:
    figure = drawn(tmp_path, table(), columns="seed")
    said = [[text.get_text() for text in axes.get_legend().get_texts()] for axes in figure.axes]
    assert said == [["ρ = 0.80", "ρ = −1.00"], ["ρ = −1.00"]]


def test_a_client_without_both_metrics_is_left_out(tmp_path: Path) -> None:
    figure = drawn(
        tmp_path, table(leave_out={("loss", 0, "accuracy"), ("loss", 1, "classes_held")})
    )
    assert clouds(figure.axes[0])[1][:, 0].tolist() == [3, 4]


def test_a_cell_without_both_metrics_counts_as_missing(tmp_path: Path) -> None:
    everything = table()
    rest = everything[everything["digest"] != "loss0"]
    missing = (
        everything[everything["digest"] == "loss0"]
        .head(1)
        .assign(metric=None, client=pd.NA, value=np.nan, status="missing")
    )
    figure = drawn(tmp_path, pd.concat([rest, missing.astype({"metric": "string"})]))
    assert figure.get_supxlabel().startswith("n = 2 of 3 runs (1 missing)")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "fedavg",
        "loss (no runs yet)",
    ]


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ([1, 2, 3, 4, 5], [1, 2, 3, 5, 4], "0.90"),  # 1 - 6 * (1 + 1) / (5 * 24)
        ([1, 2, 3, 4, 5], [5, 6, 7, 8, 700], "1.00"),
        (
            [1, 1, 2, 2],
            [1, 2, 3, 4],
            "0.89",
        ),  # ranks 1.5 1.5 3.5 3.5 against 1 2 3 4: 4 / sqrt(4 * 5)
        ([1, 1, 1], [1, 2, 3], "undefined"),
        ([1, 2, 3], [2, 2, 2], "undefined"),
        ([1, 2], [1, 2], "undefined"),
    ],
)
def test_rank_correlation_by_hand(first: list[float], second: list[float], text: str) -> None:
    assert correlation(pd.Series(first), pd.Series(second)) == text


@pytest.mark.parametrize(
    "fields",
    [{"metric": "size", "x": "size"}, {"metric": "size", "x": "loss", "also": ["test_loss"]}],
)
def test_fields_that_contradict_each_other(fields: dict[str, str]) -> None:
    with pytest.raises(UserError, match=r"choose another x|leave out also"):
        Scatter(**fields).check()
