"""Intervals across settings say what the statistics say; scatter plots of clients, whose rank
correlations are computed by hand; and shards, of which one seed is shown, on one scale."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy import stats

from cohort.core.errors import UserError
from cohort.results.comparison import compare
from cohort.results.figures import KINDS
from cohort.results.figures.draw import make_figure
from cohort.results.figures.kinds.others import MAX_DIAMETER
from cohort.results.figures.theme import COLORS, PAPER_GRAY
from cohort.results.series import write_metrics
from tests.results.figures.samples import (
    NAMES,
    PARTITIONS,
    SEEDS,
    STRATEGIES,
    STYLE,
    WORK,
    Draw,
    Fate,
    Metrics,
    accuracy,
    note,
    sample,
)

GONE: Fate = {
    ("iid", "J4", "loss", 1): ("missing", 0),
    ("iid", "J16", "fedavg", 0): ("missing", 0),
    ("iid", "J16", "loss", 1): ("missing", 0),
    ("iid", "J16", "fedentopt", 2): ("unfinished", 6),
}
HELD = {("fedavg", 0): [1, 2, 3, 4], ("fedavg", 1): [4, 3, 2, 1], ("loss", 0): [1, 2, 3, 4]}
NORMS = {("fedavg", 0): [0.1, 0.2, 0.4, 0.3], ("fedavg", 1): [0.5, 0.6, 0.7, 0.8], ("loss", 0): [0.4, 0.3, 0.2, 0.1]}  # fmt: skip
COUNTS = {
    ("a", 10): [[30, 0, 10], [0, 400, 0], [0, 0, 0], [5, 5, 0]],
    ("a", 9): [[1, 0, 0], [0, 2, 0], [0, 0, 3], [4, 0, 0]],
    ("b", 9): [[100, 0, 0], [0, 0, 25], [1, 0, 0], [0, 1, 0]],
}


def spec_of(**changes: Any) -> dict[str, Any]:
    spec = {"kind": "interval", "study": "demo", "experiment": "main", "title": "T", "style": STYLE}
    return spec | {"metric": "test_accuracy", "at": "last"} | changes


def t_tests(seeds: list[int], *settings: tuple[str, str]) -> dict[str, Any]:
    """By strategy, Student's t-test of the differences from FedAvg at the end, one of each of these
    seeds, averaged over the settings."""

    def ends(strategy: str) -> np.ndarray:
        return np.mean([accuracy(*setting, strategy)[seeds, -1] for setting in settings], axis=0)

    return {name: stats.ttest_1samp(ends(name) - ends("fedavg"), 0) for name in STRATEGIES}


def names_of(axes: Axes) -> list[str]:
    return [text.get_text().replace("\n", " ") for text in axes.get_yticklabels()]


def test_intervals(metrics: Metrics) -> None:
    figure = make_figure(spec_of(), metrics())
    (axes,) = figure.axes
    tests = t_tests([0, 1, 2], *itertools.product(PARTITIONS, WORK))
    intervals = {name: tuple(test.confidence_interval()) for name, test in tests.items()}
    intervals["fedavg"] = (0.0, 0.0)
    means = {name: sum(interval) / 2 for name, interval in intervals.items()}
    ranked = sorted(means, key=lambda strategy: -means[strategy])
    assert names_of(axes) == [NAMES[STRATEGIES.index(strategy)] for strategy in ranked]
    zero, *lines = [np.asarray(line.get_xdata()) for line in axes.lines]
    assert list(zero) == [0, 0]
    for strategy, bar, point in zip(ranked, lines[::2], lines[1::2], strict=True):
        assert tuple(bar) == pytest.approx(intervals[strategy])
        assert point == pytest.approx([means[strategy]])
    assert axes.get_xlabel() == "Test accuracy\n(points), minus\nFedAvg (random)"
    assert note(figure).startswith("36 runs; 3 seeds shared by all (settings: 4); paired means")
    figure = make_figure(spec_of(without={"strategy": "loss"}), metrics())
    assert set(names_of(figure.axes[0])) == {"FedAvg (random)", "FedEntOpt"}


@pytest.mark.parametrize(("shift", "color"), [(50, "#000000"), (-50, "#000000"), (0, PAPER_GRAY)])
def test_gray_says_which_strategies_may_be_alike(tmp_path: Path, shift: float, color: str) -> None:
    frame = sample()
    frame.loc[frame["strategy"] == "loss", "value"] += shift
    write_metrics(tmp_path / "metrics.parquet", frame, {})
    (axes,) = make_figure(spec_of(), tmp_path / "metrics.parquet").axes
    row = names_of(axes).index("Highest loss")
    assert {line.get_color() for line in axes.lines[1:] if line.get_ydata()[0] == row} == {color}


def test_only_what_all_strategies_have(metrics: Metrics) -> None:
    """Of IID two seeds are left with J = 4; with J = 16 none, as one run is not finished."""
    figure = make_figure(spec_of(), metrics(GONE))
    tests = t_tests([0, 2], ("dir-0.1", "J4"), ("dir-0.1", "J16"), ("iid", "J4"))
    bars = [line.get_xdata() for line in figure.axes[0].lines[1:] if len(line.get_xdata()) == 2]
    ends = [test.confidence_interval() for name, test in tests.items() if name != "fedavg"]
    assert np.sort(bars, axis=0) == pytest.approx(np.sort([*ends, (0, 0)], axis=0))
    assert "; 2 seeds shared by all (settings: 3); " in note(figure)


def test_a_panel_for_each_partition_names_its_own_strategies(metrics: Metrics) -> None:
    gone: Fate = {("iid", J, "loss", seed): ("missing", 0) for J in WORK for seed in SEEDS}
    figure = make_figure(spec_of(columns="partition"), metrics(gone))
    assert [axes.get_title() for axes in figure.axes] == ["dir-0.1", "iid"]
    shown = [set(names_of(axes)) for axes in figure.axes]
    assert shown == [set(NAMES), {"FedAvg (random)", "FedEntOpt"}]
    assert "; 3 seeds shared by all (settings: 2); " in note(figure)


def test_runs_of_many_settings_are_no_seeds_of_one_another(metrics: Metrics) -> None:
    """Their comparison has all runs and means, but no word on them and no difference."""
    measures = KINDS["interval"].from_spec(spec_of()).measures()
    comparison = compare(measures, spec_of(), metrics())
    assert [len(result.values) for result in comparison.results] == [12, 12, 12]
    assert not any(result.best or result.against for result in comparison.results)


def test_strategies_without_a_setting_in_common() -> None:
    rows = [("a", None), ("b", 0.5), ("c", None)]
    cells = [{"strategy": name, "selector.buffer": buffer, "seed": 0} for name, buffer in rows]
    with pytest.raises(UserError, match="compares a, b and c, but no setting"):
        KINDS["interval"].from_spec(spec_of()).check_cells(list(cells[0]), cells)
    without = spec_of(without={"strategy": ["b"]})
    KINDS["interval"].from_spec(without).check_cells(list(cells[0]), cells)


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
    positions = np.asarray(points.get_offsets()).round(6)
    return [sorted(map(tuple, positions[colors == color].tolist())) for color in COLORS[:2]]


def test_every_client_of_every_run_is_a_point(drawn: Draw) -> None:
    figure = scattered(drawn)
    (axes,) = figure.axes
    first = [(1, 10), (1, 80), (2, 20), (2, 70), (3, 40), (3, 60), (4, 30), (4, 50)]
    assert clouds(axes) == [first, [(1, 40), (2, 30), (3, 20), (4, 10)]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Classes held", "Client accuracy (%)")
    held, norms = HELD["fedavg", 0] + HELD["fedavg", 1], NORMS["fedavg", 0] + NORMS["fedavg", 1]
    rho = f"ρ = {stats.spearmanr(held, norms).statistic:.2f}".replace("-", "−")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [rho, "ρ = −1.00"]
    assert "ρ: Spearman's rank correlation of the points" in note(figure)
    figure = scattered(drawn, (("loss", 0, "accuracy"), ("loss", 1, "classes_held")))
    assert clouds(figure.axes[0])[1] == [(3, 20), (4, 10)], "others lack one of both metrics"


def dealt(draw: Draw, cells: dict[tuple[str, str, int], Any], **spec: Any) -> Figure:
    """Draw shards given by partition, strategy and seed, each with its counts or its status."""
    runs: list[tuple[dict[str, Any], dict[int, float]]] = []
    for number, ((partition, strategy, seed), counts) in enumerate(cells.items()):
        labels: dict[str, Any] = {"digest": f"k{number}", "partition": partition}
        labels |= {"strategy": strategy, "seed": seed}
        if isinstance(counts, str):
            runs.append((labels | {"status": counts, "label": None}, {}))
            continue
        for client, held in enumerate(np.array(counts, dtype=float)):  # as collect stores them
            ends = client == len(counts) - 1
            for label in range(len(held)):
                if held[label] or (ends and label == len(held) - 1):
                    runs.append((labels | {"label": label}, {client: held[label]}))
    defaults = {"kind": "shards", "metric": "label_count", "columns": "partition"}
    return draw(runs, by="client", **defaults | spec)


def bubbles(axes: Any) -> dict[tuple[int, int], float]:
    shown = axes.collections[0]
    positions = (tuple(map(int, position)) for position in shown.get_offsets())
    return dict(zip(positions, shown.get_sizes(), strict=True))  # type: ignore[arg-type]


def test_a_bubble_per_client_and_class_of_the_first_seed(drawn: Draw) -> None:
    """Areas are proportional to counts on one scale; 100, the highest of both panels, is largest.
    Seed 9 comes before seed 10, unless it has no record."""
    cells = {(partition, "fedavg", seed): counts for (partition, seed), counts in COUNTS.items()}
    figure = dealt(drawn, cells)
    first, second = map(bubbles, figure.axes)
    area = MAX_DIAMETER**2 / 100
    shares = {position: size / area for position, size in first.items()}
    assert shares == pytest.approx({(0, 0): 1, (1, 1): 2, (2, 2): 3, (3, 0): 4})
    assert set(second) == {(0, 0), (1, 2), (2, 0), (3, 1)}
    assert [second[0, 0], second[1, 2]] == pytest.approx([MAX_DIAMETER**2, MAX_DIAMETER**2 / 4])
    assert note(figure) == "n = 1 seed per panel; each panel shows its first seed"
    (legend,) = figure.legends
    samples = [text.get_text() for text in legend.get_texts()]
    assert samples == ["6 samples", "20 samples", "100 samples"]
    sizes = [handle.get_sizes()[0] for handle in legend.legend_handles]
    assert sizes == pytest.approx([MAX_DIAMETER**2 * share for share in (0.06, 0.2, 1)])
    figure = dealt(drawn, cells | {("a", "fedavg", 9): "missing"})
    assert set(bubbles(figure.axes[0])) == {(0, 0), (0, 2), (1, 1), (3, 0), (3, 1)}
    assert (
        note(figure)
        == "n = 2 of 3 runs (1 missing); 1 seed per panel; each panel shows its first seed"
    )
    cells = {("a", "fedavg", 0): "missing", ("b", "fedavg", 0): "unfinished"}
    assert [axes.texts[0].get_text() for axes in dealt(drawn, cells).axes] == ["no values yet"]
