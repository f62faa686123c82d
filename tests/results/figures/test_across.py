"""Figures across settings show what the statistics say, and over how many settings and seeds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from cohort.core.errors import UserError
from cohort.results.across import Scores, interquartile_means
from cohort.results.figures import KINDS
from cohort.results.figures.draw import compare_figure, make_figure
from cohort.results.figures.kinds import interval
from cohort.results.figures.style import COLORS
from cohort.results.report.items import alternative_text
from tests.results.figures.samples import LOOK, PARTITIONS, SEEDS, WORK, Fate, sample

Metrics = Callable[..., Path]
STRATEGIES = ("fedavg", "loss", "fedentopt")
NAMES = ["FedAvg (random)", "Highest loss", "FedEntOpt"]
GONE: Fate = {
    ("iid", "J4", "loss", 1): ("missing", 0),
    ("iid", "J16", "fedavg", 0): ("missing", 0),
    ("iid", "J16", "loss", 1): ("missing", 0),
    ("iid", "J16", "fedentopt", 2): ("unfinished", 6),
}


def spec_of(**changes: Any) -> dict[str, Any]:
    spec = {"kind": "interval", "study": "demo", "experiment": "main", "title": "T", "look": LOOK}
    return spec | {"metric": "test_accuracy", "at": "last"} | changes


def expected(*gone: tuple[str, str]) -> Scores:
    """The last accuracies in percent, without these settings and seeds."""
    rows = sample().query("metric == 'test_accuracy' and round == 12")
    table = rows.assign(
        setting=rows["partition"] + rows["J"],
        seed=rows["seed"].astype(str),
        value=rows["value"] * 100,
    )
    pairs = list(zip(table["setting"], table["seed"], strict=True))
    return Scores.of(table[[pair not in gone for pair in pairs]])


def note(figure: Figure) -> str:
    return figure.get_supxlabel().replace("\n", " ")


def names_of(axes: Axes) -> list[str]:
    return [text.get_text().replace("\n", " ") for text in axes.get_yticklabels()]


def test_intervals(metrics: Metrics) -> None:
    figure = make_figure(spec_of(), metrics())
    (axes,) = figure.axes
    assert names_of(axes) == NAMES
    for row, estimate in enumerate(interquartile_means(expected()).values()):
        bar, point = (np.asarray(line.get_xdata()) for line in axes.lines[2 * row : 2 * row + 2])
        assert tuple(bar) == pytest.approx(estimate.interval)
        assert point == pytest.approx([estimate.value])
        assert to_hex(axes.lines[2 * row].get_color()).upper() == COLORS[row]
    assert axes.get_xlabel() == "Test accuracy (%),\ninterquartile mean"
    assert note(figure).startswith("36 runs; 36 of them, in 4 settings, with a seed that all strat")


def test_intervals_of_many_stand_by_value_in_one_color(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interval, "MOST_COLORS", 2)
    (axes,) = make_figure(spec_of(), metrics()).axes
    values = interquartile_means(expected())
    ranked = sorted(values, key=lambda strategy: -values[strategy].value)
    assert names_of(axes) == [NAMES[STRATEGIES.index(strategy)] for strategy in ranked]
    assert {line.get_color() for line in axes.lines} == {COLORS[0]}


def test_only_what_all_strategies_have(metrics: Metrics) -> None:
    """Of IID two seeds are left with J = 4; with J = 16 none, as one run is not finished."""
    figure = make_figure(spec_of(), metrics(GONE))
    left = expected(("iidJ4", "1"), ("iidJ16", "0"), ("iidJ16", "1"), ("iidJ16", "2"))
    points = [line.get_xdata() for line in figure.axes[0].lines[1::2]]
    actual = interquartile_means(left)
    assert np.ravel(points) == pytest.approx([estimate.value for estimate in actual.values()])
    assert "; 24 of them, in 3 settings, with a seed that all strategies have; " in note(figure)


def test_a_panel_for_each_partition_names_its_own_strategies(metrics: Metrics) -> None:
    gone: Fate = {("iid", J, "loss", seed): ("missing", 0) for J in WORK for seed in SEEDS}
    figure = make_figure(spec_of(columns="partition"), metrics(gone))
    assert [axes.get_title() for axes in figure.axes] == ["dir-0.1", "iid"]
    assert [names_of(axes) for axes in figure.axes] == [NAMES, ["FedAvg (random)", "FedEntOpt"]]
    rows = expected()
    kept = np.isin(np.array(rows.settings)[rows.positions], ("dir-0.1J4", "dir-0.1J16"))
    runs = np.sort(rows.values[0, kept])  # six: half of the second and of the fifth
    middle = (runs[1] / 2 + runs[2] + runs[3] + runs[4] / 2) / 3
    assert figure.axes[0].lines[1].get_xdata() == pytest.approx([middle])
    assert "; 30 of them, in 4 settings, with a seed" in note(figure)


def test_without_a_strategy(metrics: Metrics) -> None:
    figure = make_figure(spec_of(without={"strategy": "loss"}), metrics())
    assert names_of(figure.axes[0]) == ["FedAvg (random)", "FedEntOpt"]
    assert note(figure).startswith("24 runs; ")


def test_nothing_in_common(metrics: Metrics) -> None:
    gone = {
        (partition, J, STRATEGIES[index], seed): ("missing", 0)
        for partition, J, index, seed in itertools.product(PARTITIONS, WORK, range(3), SEEDS)
        if seed != index
    }
    figure = make_figure(spec_of(), metrics(gone))
    reason = "no seed of a setting that all strategies have"
    assert [text.get_text() for text in figure.axes[0].texts] == [reason]
    assert reason in note(figure)
    assert compare_figure(spec_of(), metrics(gone)).description == [reason]


def test_in_words(metrics: Metrics) -> None:
    comparison = compare_figure(spec_of(), metrics())
    means = interquartile_means(expected())
    text = alternative_text(spec_of(), comparison)
    assert text.startswith(f"T. FedAvg (random) {means['fedavg'].value:.2f} (")
    assert text.count(";") == 2
    panels = compare_figure(spec_of(columns="partition"), metrics()).description
    assert [words.partition(": ")[0] for words in panels] == ["dir-0.1", "iid"]


def test_runs_of_many_settings_are_no_seeds_of_one_another(metrics: Metrics) -> None:
    """Their comparison has all runs and means, but no word on them and no difference."""
    comparison = compare_figure(spec_of(), metrics())
    assert [len(result.values) for result in comparison.results] == [12, 12, 12]
    assert not any(result.best or result.against for result in comparison.results)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"metric": "update_norm"}, "neither high nor low is better"),
        ({"limits": [0, 100]}, "leave out limits"),
    ],
)
def test_fields_that_contradict_each_other(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        KINDS["interval"].from_spec(spec_of(**fields)).check()


def test_strategies_without_a_setting_in_common() -> None:
    cells = [
        {"strategy": "a", "partition": "iid", "selector.buffer": None, "seed": 0},
        {"strategy": "b", "partition": "iid", "selector.buffer": 0.5, "seed": 0},
        {"strategy": "c", "partition": "iid", "selector.buffer": None, "seed": 0},
    ]
    axes = list(cells[0])
    with pytest.raises(UserError, match="compares a, b and c, but no setting"):
        KINDS["interval"].from_spec(spec_of()).check_cells(axes, cells)
    without = spec_of(without={"strategy": ["b"]})
    KINDS["interval"].from_spec(without).check_cells(axes, cells)
