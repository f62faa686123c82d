"""Scatter plots of clients, whose rank correlations are computed by hand and by scipy; and shards,
of which one seed is shown, on one scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy import stats

from cohort.results.figures.kinds.clients import LARGEST, SMALLEST, correlation, legend_samples
from cohort.results.figures.style import COLORS
from tests.results.figures.test_draw import note

Draw = Callable[..., Figure]
HELD = {("fedavg", 0): [1, 2, 3, 4], ("fedavg", 1): [4, 3, 2, 1], ("loss", 0): [1, 2, 3, 4]}
NORMS = {("fedavg", 0): [0.1, 0.2, 0.4, 0.3], ("fedavg", 1): [0.5, 0.6, 0.7, 0.8], ("loss", 0): [0.4, 0.3, 0.2, 0.1]}  # fmt: skip
COUNTS = {
    ("a", 10): [[30, 0, 10], [0, 400, 0], [0, 0, 0], [5, 5, 0]],
    ("a", 9): [[1, 0, 0], [0, 2, 0], [0, 0, 3], [4, 0, 0]],
    ("b", 9): [[100, 0, 0], [0, 0, 25], [1, 0, 0], [0, 1, 0]],
}


def scattered(draw: Draw, without: tuple[tuple[str, int, str], ...] = (), **spec: Any) -> Figure:
    """Draw both metrics of every client, `without` some: (strategy, client, metric)."""
    runs = []
    for metric, values in (("accuracy", NORMS), ("classes_held", HELD)):
        for (strategy, seed), run in values.items():
            labels = {"digest": f"{strategy}{seed}", "strategy": strategy, "seed": seed}
            shown = {
                client: float(value)
                for client, value in enumerate(run)
                if (strategy, client, metric) not in without
            }
            runs.append((labels | {"metric": metric}, shown))
    return draw(runs, by="client", kind="scatter", metric="accuracy", x="classes_held", **spec)


def clouds(axes: Axes) -> list[list[tuple[float, float]]]:
    """The points of each strategy, distinguished by their color."""
    (points,) = axes.collections
    colors = np.array([to_hex(color).upper() for color in points.get_facecolors()])
    places = np.asarray(points.get_offsets()).round(6)
    return [sorted(map(tuple, places[colors == color].tolist())) for color in COLORS[:2]]


def correlations(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_every_client_of_every_run_is_a_point(drawn: Draw) -> None:
    figure = scattered(drawn)
    (axes,) = figure.axes
    first = [(1, 10), (1, 80), (2, 20), (2, 70), (3, 40), (3, 60), (4, 30), (4, 50)]
    assert clouds(axes) == [first, [(1, 40), (2, 30), (3, 20), (4, 10)]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Classes held", "Client accuracy (%)")
    both = [HELD["fedavg", 0] + HELD["fedavg", 1], NORMS["fedavg", 0] + NORMS["fedavg", 1]]
    rho = f"ρ = {stats.spearmanr(*both).statistic:.2f}".replace("-", "−")
    assert correlations(axes) == [rho, "ρ = −1.00"]
    assert "ρ: Spearman's rank correlation of the points" in note(figure)
    panels = scattered(drawn, columns="seed").axes
    assert list(map(correlations, panels)) == [["ρ = 0.80", "ρ = −1.00"], ["ρ = −1.00"]]


def test_a_client_without_both_metrics_is_left_out(drawn: Draw) -> None:
    figure = scattered(drawn, (("loss", 0, "accuracy"), ("loss", 1, "classes_held")))
    assert clouds(figure.axes[0])[1] == [(3, 20), (4, 10)]


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ([1, 2, 3, 4, 5], [1, 2, 3, 5, 4], "0.90"),  # 1 - 6 * (1 + 1) / (5 * 24)
        ([1, 2, 3, 4, 5], [5, 6, 7, 8, 700], "1.00"),
        ([1, 1, 2, 2], [1, 2, 3, 4], "0.89"),  # ranks 1.5 1.5 3.5 3.5 and 1 to 4: 4 / sqrt(20)
        ([1, 1, 1], [1, 2, 3], "undefined"),
        ([1, 2], [1, 2], "undefined"),
    ],
)
def test_rank_correlation_by_hand(first: list[float], second: list[float], text: str) -> None:
    assert correlation(pd.Series(first), pd.Series(second)) == text


def dealt(draw: Draw, cells: dict[tuple[str, str, int], Any], **spec: Any) -> Figure:
    """Draw shards given by partition, strategy and seed, each with its counts or its status."""
    runs: list[tuple[dict[str, Any], dict[int, float]]] = []
    for number, ((partition, strategy, seed), counts) in enumerate(cells.items()):
        labels = {
            "digest": f"k{number}",
            "partition": partition,
            "strategy": strategy,
            "seed": seed,
        }
        if isinstance(counts, str):
            runs.append((labels | {"status": counts, "label": None}, {}))
            continue
        for client, held in enumerate(np.array(counts, dtype=float)):  # as collect stores them
            ends = client == len(counts) - 1
            for label in np.flatnonzero(held) if not ends else range(len(held)):
                if held[label] or label == len(held) - 1:
                    runs.append((labels | {"label": int(label)}, {client: held[label]}))
    return draw(
        runs,
        by="client",
        **{"kind": "shards", "metric": "label_count", "columns": "partition"} | spec,
    )


def three_cells() -> dict[tuple[str, str, int], Any]:
    return {(partition, "fedavg", seed): counts for (partition, seed), counts in COUNTS.items()}


def bubbles(axes: Any) -> dict[tuple[int, int], float]:
    shown = axes.collections[0]
    places = (tuple(map(int, place)) for place in shown.get_offsets())
    return dict(zip(places, shown.get_sizes(), strict=True))  # type: ignore[arg-type]


def test_a_bubble_per_client_and_class_of_the_first_seed(drawn: Draw) -> None:
    """Areas are proportional to counts on one scale; 100, the highest of both panels, is largest.
    Seed 9 comes before seed 10."""
    figure = dealt(drawn, three_cells())
    first, second = map(bubbles, figure.axes)
    area = LARGEST**2 / 100
    shares = {place: size / area for place, size in first.items()}
    assert shares == pytest.approx({(0, 0): 1, (1, 1): 2, (2, 2): 3, (3, 0): 4})
    assert set(second) == {(0, 0), (1, 2), (2, 0), (3, 1)}
    assert [second[0, 0], second[1, 2]] == pytest.approx([LARGEST**2, LARGEST**2 / 4])
    assert note(figure) == "n = 1 seed per panel; each panel shows its first seed"
    (legend,) = figure.legends
    samples = [text.get_text() for text in legend.get_texts()]
    assert samples == ["6 samples", "20 samples", "100 samples"]
    sizes = [handle.get_sizes()[0] for handle in legend.legend_handles]
    assert sizes == pytest.approx([LARGEST**2 * share for share in (0.06, 0.2, 1)])


def test_the_first_seed_with_a_record_is_shown(drawn: Draw) -> None:
    figure = dealt(drawn, three_cells() | {("a", "fedavg", 9): "missing"})
    assert set(bubbles(figure.axes[0])) == {(0, 0), (0, 2), (1, 1), (3, 0), (3, 1)}
    assert note(figure) == "n = 2 of 3 runs (1 missing); each panel shows its first seed"
    cells = {("a", "fedavg", 0): "missing", ("b", "fedavg", 0): "unfinished"}
    figure = dealt(drawn, cells)
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["no values yet"]


@pytest.mark.parametrize(
    ("most", "values"), [(1, [1]), (7, [1, 7]), (450, [20, 100, 400]), (5000, [300, 1000, 5000])]
)
def test_numbers_in_the_legend(most: int, values: list[int]) -> None:
    assert list(legend_samples(most)) == values


def test_strategies_share_a_panel_and_one_sample_of_thousands_is_still_seen(drawn: Draw) -> None:
    counts = [[5000, 1], [0, 2500]]
    (axes,) = dealt(drawn, {("a", strategy, 0): counts for strategy in ("fedavg", "loss")}).axes
    large = LARGEST**2
    assert bubbles(axes) == pytest.approx({(0, 0): large, (0, 1): SMALLEST**2, (1, 1): large / 2})
    for ticks in (axes.get_xticks(), axes.get_yticks()):
        assert {0, 1} <= set(ticks) and all(tick == int(tick) for tick in ticks)
