"""Figures show the measured numbers, and the same numbers give the same bytes."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from cohort.results.figures.draw import draw, make_figure
from cohort.results.figures.kinds import curves
from cohort.results.figures.kinds.bars import PALE
from cohort.results.figures.kinds.curves import STOPPED, Curves
from cohort.results.figures.style import COLORS, FONT, Style
from tests.results.figures.samples import PARTITIONS, SEEDS, STRATEGIES, WORK, Fate, sample

Metrics = Callable[..., Path]
Spec = dict[str, Any]
EVERYTHING_MISSING: Fate = dict.fromkeys(
    itertools.product(PARTITIONS, WORK, STRATEGIES, SEEDS), ("missing", 0)
)


def texts(figure: Figure) -> list[str]:
    words = [text.get_text() for axes in figure.axes for text in [*axes.texts, axes.title]]
    legend = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return [*words, *legend, figure.get_supxlabel()]


def whiskers(axes: Axes) -> list[np.ndarray]:
    """The heights of the ends of every whisker, in the order of the bars."""
    lines = [np.asarray(line.get_ydata()) for line in axes.lines if not line.is_dashed()]
    return [line[~np.isnan(line)] for line in lines]


def accuracy(partition: str, J: str, strategy: str) -> np.ndarray:
    """In percent, a row for each seed and a column for each evaluated round."""
    rows = sample().query(
        "metric == 'test_accuracy' and partition == @partition and J == @J and strategy == @strategy"
    )
    return rows.pivot(index="seed", columns="round", values="value").to_numpy() * 100


def test_curves_are_mean_and_standard_deviation_over_seeds(spec: Spec, metrics: Metrics) -> None:
    axes = make_figure(spec, metrics()).axes[0]
    assert axes.get_title() == "dir-0.1, J = 4 local steps"
    values = accuracy("dir-0.1", "J4", "loss")
    line = next(
        line for line in axes.lines if line.get_color() == COLORS[1] and len(line.get_xdata()) == 6
    )
    np.testing.assert_array_equal(line.get_xdata(), [2, 4, 6, 8, 10, 12])
    np.testing.assert_allclose(line.get_ydata(), values.mean(axis=0))
    band = axes.collections[1].get_paths()[0].vertices
    for round, mean, deviation in zip(
        [2, 12], values.mean(axis=0)[[0, -1]], values.std(axis=0, ddof=1)[[0, -1]], strict=True
    ):
        heights = band[band[:, 0] == round, 1]
        np.testing.assert_allclose(
            [heights.min(), heights.max()], [mean - deviation, mean + deviation]
        )


def test_smoothing_uses_shorter_windows_at_the_ends() -> None:
    rows = {
        "digest": "a",
        "metric": "test_loss",
        "round": [1, 2, 3, 4],
        "value": [1.0, 2.0, 6.0, 4.0],
    }
    smooth = Curves(metric="test_loss", smoothing=3).measure(pd.DataFrame(rows))
    assert smooth["value"].tolist() == [1.5, 3.0, 4.0, 5.0]


def test_smoothing_of_a_single_point() -> None:
    rows = {"digest": ["a"], "metric": "test_loss", "round": [1], "value": [7.0]}
    assert Curves(metric="test_loss", smoothing=5).measure(pd.DataFrame(rows))[
        "value"
    ].tolist() == [7.0]


def test_smoothing_stays_within_a_run() -> None:
    rows = {
        "digest": ["a", "a", "b", "b"],
        "metric": "test_loss",
        "round": [1, 2, 1, 2],
        "value": [1.0, 3.0, 100.0, 300.0],
    }
    assert Curves(metric="test_loss", smoothing=3).measure(pd.DataFrame(rows))[
        "value"
    ].tolist() == [2.0, 2.0, 200.0, 200.0]


def test_an_incomplete_run_is_drawn_up_to_its_last_round(spec: Spec, metrics: Metrics) -> None:
    figure = make_figure(
        spec,
        metrics(
            {
                ("dir-0.1", "J4", "fedavg", 0): ("diverged", 6),
                ("iid", "J4", "loss", 1): ("unfinished", 4),
            }
        ),
    )
    solid, dotted, crosses = figure.axes[0].lines[:3]
    values = accuracy("dir-0.1", "J4", "fedavg")
    np.testing.assert_allclose(solid.get_ydata(), values.mean(axis=0)[:3])
    np.testing.assert_allclose(dotted.get_ydata()[1:], values[1:].mean(axis=0)[3:])
    assert dotted._dash_pattern[1] == [part * dotted.get_linewidth() for part in STOPPED[1]]
    assert (crosses.get_marker(), list(crosses.get_xdata())) == ("x", [6])
    assert texts(figure)[-1].replace("\n", " ") == (
        "n = 34 of 36 runs (1 diverged, 1 unfinished); band: ± 1 SD over seeds; unfinished runs included; ×: a run diverged; dotted: fewer runs"
    )


def test_bars_are_mean_and_standard_deviation_of_the_last_evaluation(
    bars: Spec, metrics: Metrics
) -> None:
    axes = make_figure(bars | {"reference": 50, "reference_label": "Centralized"}, metrics()).axes[
        1
    ]
    heights = {
        to_hex(bar.get_facecolor()).upper(): bar.get_height()
        for bar in axes.patches
        if bar.get_x() > 0.5
    }
    last = {strategy: accuracy("iid", "J16", strategy)[:, -1] for strategy in STRATEGIES}
    assert heights == {
        COLORS[place]: pytest.approx(last[strategy].mean())
        for place, strategy in enumerate(STRATEGIES)
    }
    low, high = last["fedentopt"].mean() + np.array([-1, 1]) * last["fedentopt"].std(ddof=1)
    whisker = whiskers(axes)[-1]
    assert low < 0  # where no accuracy can be
    np.testing.assert_allclose([whisker.min(), whisker.max()], [0, high])


def test_unfinished_runs_make_a_bar_pale_and_diverged_runs_cross_it(
    bars: Spec, metrics: Metrics
) -> None:
    figure = make_figure(
        bars,
        metrics(
            {
                ("dir-0.1", "J4", "fedavg", 0): ("unfinished", 6),
                ("iid", "J4", "loss", 1): ("diverged", 4),
            }
        ),
    )
    first = figure.axes[0].patches[0].get_facecolor()[:3]
    np.testing.assert_allclose(
        first, [PALE + (1 - PALE) * part for part in matplotlib.colors.to_rgb(COLORS[0])]
    )
    assert [text.get_text() for text in figure.axes[0].texts] == ["×"]
    assert "pale: with unfinished runs" in texts(figure)[-1]


def test_clients_are_sorted_within_each_run(bars: Spec, metrics: Metrics) -> None:
    figure = make_figure(
        bars | {"x": "client", "metric": "selected", "columns": "partition", "rows": "J"}, metrics()
    )
    rows = sample().query(
        "metric == 'selected' and partition == 'dir-0.1' and J == 'J4' and strategy == 'fedavg'"
    )
    runs = rows.pivot(index="seed", columns="client", values="value").to_numpy()
    outline = figure.axes[0].patches[0].get_data()
    np.testing.assert_allclose(outline.values, np.sort(runs, axis=1)[:, ::-1].mean(axis=0))
    np.testing.assert_array_equal(outline.edges, [0.5, 1.5, 2.5, 3.5, 4.5, 5.5])


@pytest.mark.parametrize("kind", ["spec", "bars"])
def test_a_figure_without_any_run_says_so(
    kind: str, request: pytest.FixtureRequest, metrics: Metrics
) -> None:
    figure = make_figure(request.getfixturevalue(kind), metrics(EVERYTHING_MISSING))
    assert texts(figure).count("no runs yet") == len(figure.axes)
    assert texts(figure)[-1] == "n = 0 of 36 runs (36 missing)"


def test_a_panel_without_runs_is_left_out_and_a_hue_says_so(spec: Spec, metrics: Metrics) -> None:
    missing: Fate = {
        cell: how
        for cell, how in EVERYTHING_MISSING.items()
        if cell[:2] == ("iid", "J4") or cell[2] == "loss"
    }
    figure = make_figure(spec, metrics(missing))
    titles = [axes.get_title() for axes in figure.axes]
    assert len(titles) == 3 and "iid, J = 4 local steps" not in titles
    assert texts(figure)[-4:-1] == ["FedAvg (random)", "Highest loss (no runs yet)", "FedEntOpt"]


def test_a_row_of_panels_without_runs_is_left_out(spec: Spec, metrics: Metrics) -> None:
    of_work = {cell: how for cell, how in EVERYTHING_MISSING.items() if cell[1] == "J16"}
    figure = make_figure(spec, metrics(of_work))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["dir-0.1, J = 4 local steps", "iid, J = 4 local steps"]
    assert texts(figure)[-1].replace("\n", " ").startswith("n = 3 seeds per curve; ")
    assert "2 panels without runs left out" in texts(figure)[-1].replace("\n", " ")


def test_the_note_says_what_a_band_is_and_whose(
    spec: Spec, bars: Spec, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "FEW_CURVES", 2)
    own = spec | {"look": spec["look"] | {"methods": ["fedentopt"]}}
    drawn = [make_figure(each, metrics()) for each in (spec, own, bars)]
    notes = [figure.get_supxlabel().replace("\n", " ") for figure in drawn]
    assert "SD" not in notes[0], "of three curves none has a band"
    assert "; band: ± 1 SD over seeds (FedEntOpt only)" in notes[1]
    assert "; whisker: ± 1 SD over seeds" in notes[2]


def test_all_strategies_look_different_and_a_papers_own_like_no_other() -> None:
    """Sixteen strategies, of which the paper proposes one, or none."""
    names = ["fedavg", *(f"strategy {place}" for place in range(15))]
    for own in ([], ["strategy 7"]):
        style = Style(orders={}, titles={}, strategies=names, methods=own)
        colors = style.colors("strategy", names)
        dashes = {name: style.dash("strategy", name) for name in names}
        assert len({(colors[name], str(dashes[name])) for name in names}) == 16
        assert len({(colors[name], style.hatch("strategy", name)) for name in names}) == 16
        assert [name for name in names if dashes[name] == "-"] == (own or ["fedavg"])
        for name in ("fedavg", *own):
            assert [other for other in names if colors[other] == colors[name]] == [name]


def test_titles_are_not_parsed_as_math(spec: Spec, metrics: Metrics, tmp_path: Path) -> None:
    look = spec["look"] | {"titles": {"strategy": {"loss": r"a $\wrong$ formula"}}}
    draw(spec | {"look": look}, metrics(), [tmp_path / "figure.pdf"])


def test_fonts_come_with_matplotlib() -> None:
    font = matplotlib.font_manager.findfont(FONT)
    assert Path(font).is_relative_to(matplotlib.get_data_path())


@pytest.mark.parametrize("kind", ["spec", "bars"])
def test_the_same_numbers_give_the_same_bytes(
    kind: str, request: pytest.FixtureRequest, metrics: Metrics, tmp_path: Path
) -> None:
    spec = request.getfixturevalue(kind)
    before = dict(matplotlib.rcParams)
    written = []
    for shuffle in (None, 1):
        outputs = [tmp_path / str(shuffle) / f"figure{ending}" for ending in (".png", ".pdf")]
        draw(spec, metrics(shuffle=shuffle), outputs)
        written.append([output.read_bytes() for output in outputs])
    assert written[0] == written[1]
    assert b"CreationDate" not in written[0][1]
    assert dict(matplotlib.rcParams) == before
    assert not list(tmp_path.rglob(".figure*"))


def test_bytes_do_not_depend_on_the_process(spec: Spec, metrics: Metrics, tmp_path: Path) -> None:
    outputs = [tmp_path / f"here{ending}" for ending in (".png", ".pdf")]
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red"}):
        draw(spec, metrics(), outputs)
    there = [tmp_path / f"there{ending}" for ending in (".png", ".pdf")]
    code = f"from cohort.results.figures.draw import draw; draw({spec!r}, {str(metrics())!r}, {list(map(str, there))!r})"
    subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
        check=True,
    )
    assert [file.read_bytes() for file in outputs] == [file.read_bytes() for file in there]
