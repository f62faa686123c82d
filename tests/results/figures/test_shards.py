"""The figure of shards shows the samples of each client, of one seed, on one scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from cohort.results.figures.draw import make_figure
from cohort.results.figures.kinds.clients import LARGEST, SMALLEST, legend_samples
from cohort.results.figures.style import COLORS
from cohort.results.files import write_metrics

COUNTS = {
    ("a", 10): [[30, 0, 10], [0, 400, 0], [0, 0, 0], [5, 5, 0]],
    ("a", 9): [[1, 0, 0], [0, 2, 0], [0, 0, 3], [4, 0, 0]],
    ("b", 9): [[100, 0, 0], [0, 0, 25], [1, 0, 0], [0, 1, 0]],
}
SPEC = {
    "kind": "shards",
    "study": "s",
    "experiment": "e",
    "title": "Shards",
    "caption": "",
    "look": {"orders": {}},
    "columns": "partition",
}
Cells = dict[tuple[str, str, int], Any]


def rows_of(counts: np.ndarray) -> list[dict[str, Any]]:
    """As collect stores them: what clients hold, and the last count in any case."""
    last = tuple(size - 1 for size in counts.shape)
    return [
        {"metric": "label_count", "client": at[0], "label": at[1], "value": n}
        for at, n in np.ndenumerate(counts)
        if n or at == last
    ]


def figure_of(folder: Path, cells: Cells, **spec: Any) -> Figure:
    """Draw cells given by partition, strategy and seed, each with its counts or its status."""
    rows = []
    for number, ((partition, strategy, seed), what) in enumerate(cells.items()):
        cell = {
            "digest": f"k{number}",
            "study": "s",
            "experiment": "e",
            "dataset": "d",
            "partition": partition,
            "strategy": strategy,
        }
        done = not isinstance(what, str)
        result = rows_of(np.array(what)) if done else [{"metric": None, "value": np.nan}]
        rows += [
            cell
            | {
                "seed": seed,
                "status": "done" if done else what,
                "round": None,
                "client": None,
                "label": None,
            }
            | row
            for row in result
        ]
    frame = pd.DataFrame(rows).astype(
        {
            "metric": "string",
            "round": "Int64",
            "client": "Int64",
            "label": "Int64",
            "value": "float64",
        }
    )
    write_metrics(folder / "metrics.parquet", frame.sample(frac=1, random_state=0), {})
    return make_figure(SPEC | spec, folder / "metrics.parquet")


def three_cells() -> Cells:
    return {(partition, "fedavg", seed): counts for (partition, seed), counts in COUNTS.items()}


def bubbles(axes: Any) -> dict[tuple[int, int], float]:
    drawn = axes.collections[0]
    return {
        (int(x), int(y)): size
        for (x, y), size in zip(drawn.get_offsets(), drawn.get_sizes(), strict=True)
    }


def test_a_bubble_per_client_and_class_of_the_first_seed(tmp_path: Path) -> None:
    first, second = (bubbles(axes) for axes in make_axes(figure_of(tmp_path, three_cells())))
    assert set(second) == {(0, 0), (1, 2), (2, 0), (3, 1)}
    # Areas are proportional to counts on one scale; 100, the highest of both panels, is largest. The
    # smallest diameter is 1.2 points: 1.44 of 196 square points for less than 0.73 samples of 100.
    area = LARGEST**2 / 100
    assert {place: size / area for place, size in first.items()} == pytest.approx(
        {(0, 0): 1, (1, 1): 2, (2, 2): 3, (3, 0): 4}
    )
    assert second[(0, 0)] == pytest.approx(LARGEST**2) and second[(1, 2)] == pytest.approx(
        LARGEST**2 / 4
    )


def make_axes(figure: Figure) -> list[Any]:
    return [axes for axes in figure.axes if axes.collections]


def test_seeds_are_ordered_as_numbers_and_the_note_says_which_is_shown(tmp_path: Path) -> None:
    """Seed 9 comes before seed 10, and the record of seed 9 of `a` is not there yet."""
    cells: Cells = three_cells() | {("a", "fedavg", 9): "missing"}
    figure = figure_of(tmp_path, cells)
    assert set(bubbles(figure.axes[0])) == {(0, 0), (0, 2), (1, 1), (3, 0), (3, 1)}
    assert figure.get_supxlabel() == "n = 2 of 3 runs (1 missing); each panel shows its first seed"
    complete = figure_of(tmp_path, three_cells())
    assert complete.get_supxlabel() == "n = 1 seed per panel; each panel shows its first seed"


def test_the_legend_shows_round_numbers_at_the_size_of_their_bubbles(tmp_path: Path) -> None:
    figure = figure_of(tmp_path, three_cells())
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "6 samples",
        "20 samples",
        "100 samples",
    ]
    sizes = [handle.get_sizes()[0] for handle in legend.legend_handles]
    assert sizes == pytest.approx([LARGEST**2 * share for share in (0.06, 0.2, 1)])


@pytest.mark.parametrize(
    ("most", "values"),
    [
        (1, [1]),
        (3, [3]),
        (7, [1, 7]),
        (16, [1, 4, 10]),
        (450, [20, 100, 400]),
        (5000, [300, 1000, 5000]),
    ],
)
def test_numbers_in_the_legend(most: int, values: list[int]) -> None:
    assert list(legend_samples(most)) == values


def test_strategies_share_a_panel_and_are_drawn_once(tmp_path: Path) -> None:
    cells: Cells = {("a", strategy, 0): COUNTS["a", 9] for strategy in ("fedavg", "loss")}
    figure = figure_of(tmp_path, cells)
    assert len(bubbles(figure.axes[0])) == 4 and len(figure.axes) == 1


def test_without_panels_the_first_run_is_drawn(tmp_path: Path) -> None:
    figure = figure_of(
        tmp_path,
        {("a", "fedavg", 0): COUNTS["a", 9], ("a", "fedavg", 1): COUNTS["a", 10]},
        columns=None,
    )
    assert set(bubbles(figure.axes[0])) == {(0, 0), (1, 1), (2, 2), (3, 0)}


def test_one_sample_of_thousands_is_still_seen(tmp_path: Path) -> None:
    sizes = bubbles(figure_of(tmp_path, {("a", "fedavg", 0): [[5000, 1], [0, 2500]]}).axes[0])
    assert sizes == pytest.approx({(0, 0): LARGEST**2, (0, 1): SMALLEST**2, (1, 1): LARGEST**2 / 2})
    assert SMALLEST >= 1  # a point, the width of a thin line


def test_bubbles_that_would_be_too_small_are_colors(tmp_path: Path) -> None:
    """Ten clients have more than six points each, 40 have less."""
    for clients, kind in ((10, "PathCollection"), (40, "QuadMesh")):
        counts = np.ones((clients, 5), dtype=int)
        axes = figure_of(tmp_path, {("a", "fedavg", 0): counts}).axes[0]
        assert type(axes.collections[0]).__name__ == kind


def test_many_clients_and_classes_are_a_heat_map(tmp_path: Path) -> None:
    counts = np.zeros((100, 100), dtype=int)
    counts[3, 40], counts[99, 99], counts[7, 0] = 400, 100, 1
    figure = figure_of(tmp_path, {("a", "fedavg", 0): counts})
    mesh = figure.axes[0].collections[0]
    field = mesh.get_array()
    assert field.shape == (100, 100) and (field[40, 3], field[99, 99], field[0, 7]) == (400, 100, 1)
    assert field.mask.sum() == 9997
    figure.draw_without_rendering()
    # the color of 100 of 400 samples is that of half the diameter of 400: the middle of the shades
    assert to_hex(mesh.to_rgba(100)).upper() == COLORS[0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "20 samples",
        "100 samples",
        "400 samples",
    ]


def test_a_heat_map_fits_in_its_axes(tmp_path: Path) -> None:
    counts = np.ones((120, 30), dtype=int)
    axes = figure_of(tmp_path, {("a", "fedavg", 0): counts}).axes[0]
    assert (
        axes.get_xlim()[0] <= -0.5
        and axes.get_xlim()[1] >= 119.5
        and axes.get_ylim()[0] <= -0.5
        and axes.get_ylim()[1] >= 29.5
    )


def test_rows_have_their_own_y_axes(tmp_path: Path) -> None:
    cells: Cells = {
        ("a", "fedavg", 0): np.ones((5, 3), dtype=int),
        ("b", "fedavg", 0): np.ones((5, 40), dtype=int),
    }
    first, second = figure_of(tmp_path, cells, columns=None, rows="partition").axes
    assert first.get_ylim() == pytest.approx((-0.6, 2.6)) and second.get_ylim() == pytest.approx(
        (-0.6, 39.6)
    )


def test_clients_and_classes_are_whole_numbers_also_if_there_are_two(tmp_path: Path) -> None:
    (axes,) = figure_of(tmp_path, {("a", "fedavg", 0): [[3, 1], [0, 2]]}).axes
    for ticks in (axes.get_xticks(), axes.get_yticks()):
        assert {0, 1} <= set(ticks) and all(tick == int(tick) for tick in ticks)


def test_a_panel_whose_runs_have_no_values_says_so_and_one_without_runs_is_left_out(
    tmp_path: Path,
) -> None:
    figure = figure_of(tmp_path, {("a", "fedavg", 0): "missing", ("b", "fedavg", 0): "unfinished"})
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["no values yet"]
    assert figure.get_supxlabel().startswith("n = 0 of 1 run (1 unfinished); ")
