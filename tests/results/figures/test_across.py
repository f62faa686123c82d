"""Figures across settings show what the statistics say, and over how many settings and seeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from cohort.core.errors import UserError
from cohort.results.across import Scores, interquartile_means, profiles, win_rates
from cohort.results.figures.alternative import alternative_text
from cohort.results.figures.draw import compare_figure, kind_of, make_figure
from cohort.results.figures.kinds import interval
from cohort.results.figures.style import COLORS
from cohort.results.names import Names
from cohort.results.ranks import ranking
from cohort.results.series import read_metric
from tests.results.figures.samples import LOOK, PARTITIONS, SEEDS, WORK, Fate, sample

Metrics = Callable[..., Path]
KINDS = ("interval", "critical_difference", "win_rates", "performance_profile")
STRATEGIES = ("fedavg", "loss", "fedentopt")
NAMES = ["FedAvg (random)", "Highest loss", "FedEntOpt"]
GONE: Fate = {
    ("iid", "J4", "loss", 1): ("missing", 0),
    ("iid", "J16", "fedavg", 0): ("missing", 0),
    ("iid", "J16", "loss", 1): ("missing", 0),
    ("iid", "J16", "fedentopt", 2): ("unfinished", 6),
}


def spec_of(kind: str, **changes: Any) -> dict[str, Any]:
    spec = {"kind": kind, "study": "demo", "experiment": "main", "title": "", "look": LOOK}
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
    figure = make_figure(spec_of("interval"), metrics())
    (axes,) = figure.axes
    assert names_of(axes) == NAMES
    actual = interquartile_means(expected())
    for row, estimate in enumerate(actual.values()):
        bar, point = (np.asarray(line.get_xdata()) for line in axes.lines[2 * row : 2 * row + 2])
        assert tuple(bar) == pytest.approx(estimate.interval)
        assert point == pytest.approx([estimate.value])
        assert to_hex(axes.lines[2 * row].get_color()).upper() == COLORS[row]
    assert axes.get_xlabel() == "Test accuracy (%),\ninterquartile mean"
    assert note(figure).startswith("36 runs; 4 settings (partition and J), 3 seeds in each; ")


def test_intervals_of_many_stand_by_value_in_one_color(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interval, "MOST_COLORS", 2)
    (axes,) = make_figure(spec_of("interval"), metrics()).axes
    values = interquartile_means(expected())
    ranked = sorted(values, key=lambda strategy: -values[strategy].value)
    assert names_of(axes) == [NAMES[STRATEGIES.index(strategy)] for strategy in ranked]
    assert {line.get_color() for line in axes.lines} == {COLORS[0]}


def test_a_matrix_of_win_rates(metrics: Metrics) -> None:
    (axes,) = make_figure(spec_of("win_rates"), metrics()).axes
    rates = win_rates(expected())
    shown = {tuple(map(round, text.get_position())): text for text in axes.texts}
    assert len(shown) == 6
    for row, strategy in enumerate(STRATEGIES):
        for column, other in enumerate(STRATEGIES):
            if strategy == other:
                continue
            rate, text = rates[strategy, other], shown[column, row]
            assert text.get_text() == f"{100 * rate.value:.0f}"
            low, high = rate.interval or (0, 1)
            assert (text.get_fontweight() == "bold") == (low > 0.5 or high < 0.5)
    assert names_of(axes) == NAMES


def test_few_runs_are_never_clear(metrics: Metrics) -> None:
    """Five of five are as likely as a coin on one side, in one of sixteen."""
    gone = {
        (partition, J, strategy, seed): ("missing", 0)
        for partition in PARTITIONS
        for J in WORK
        for strategy in STRATEGIES
        for seed in SEEDS
        if (J, seed) not in (("J4", 0), ("J4", 1))
    }
    (axes,) = make_figure(spec_of("win_rates"), metrics(gone)).axes
    assert {text.get_fontweight() for text in axes.texts} == {"normal"}


def test_ranks(metrics: Metrics) -> None:
    figure = make_figure(spec_of("critical_difference"), metrics())
    actual = ranking(expected())
    assert actual is not None
    texts = [text.get_text() for text in figure.axes[0].texts]
    for strategy, rank in actual.ranks.items():
        name = NAMES[STRATEGIES.index(strategy)]
        assert {f"{name}  {rank:.2f}", f"{rank:.2f}  {name}"} & set(texts)
    assert "critical difference 1.66" in texts  # 2.3437 sqrt(3 4 / (6 4))
    assert f"Friedman's test p = {actual.p_value:.2g}" in note(figure).replace("\xa0", " ")


def test_a_critical_difference_that_is_longer_than_the_axis_is_cut_and_named(
    metrics: Metrics,
) -> None:
    """Of two settings it is 2.3437 sqrt(3 4 / (6 2)) = 2.34, from rank 1 to 3.34; the axis ends at 3.3."""
    spec = spec_of("critical_difference", columns="partition")
    for axes in make_figure(spec, metrics()).axes:
        (text,) = (text for text in axes.texts if "critical difference 2.34" in text.get_text())
        _, right = axes.get_xlim()
        assert text.xy[0] <= right, "matplotlib drops what is said of a point outside"
        assert max(max(line.get_xdata()) for line in axes.lines) <= right


def test_on_a_phone_ranks_lie_one_below_the_other(metrics: Metrics) -> None:
    """The best first; one thick line at the right joins all three, which nothing tells apart."""
    figure = make_figure(spec_of("critical_difference"), metrics(), is_narrow=True)
    ranked = ranking(expected())
    assert ranked is not None
    names = dict(zip(STRATEGIES, NAMES, strict=True))
    rows = [(rank, names[strategy]) for strategy, rank in ranked.ranks.items()]
    assert rows == sorted(rows, key=lambda row: row[0])
    (axes,) = figure.axes
    assert names_of(axes) == [f"{name}  {rank:.2f}" for rank, name in rows]
    assert [line.get_xdata()[0] for line in axes.lines[:3]] == [rank for rank, _ in rows]
    assert axes.lines[3].get_ydata() == pytest.approx((-0.3, 2.3))


def test_cells_without_room_have_no_numbers(metrics: Metrics) -> None:
    for letters, texts in ((10, 6), (45, 0)):
        titles = {"strategy": {strategy: strategy.ljust(letters, ".") for strategy in STRATEGIES}}
        spec = spec_of("win_rates") | {"look": LOOK | {"titles": titles}}
        (axes,) = make_figure(spec, metrics()).axes
        assert len(axes.texts) == texts


def test_profiles(metrics: Metrics) -> None:
    figure = make_figure(spec_of("performance_profile"), metrics())
    (axes,) = figure.axes
    for line, strategy in zip(axes.lines, STRATEGIES, strict=True):
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        np.testing.assert_allclose(y, 100 * profiles(expected(), x)[strategy].shares)
        assert (y[0], y[-1]) == (100, 0)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == NAMES


def test_only_what_all_strategies_have(metrics: Metrics) -> None:
    """Of IID two seeds are left with J = 4; with J = 16 none, as one run is not finished."""
    figure = make_figure(spec_of("interval"), metrics(GONE))
    left = expected(("iidJ4", "1"), ("iidJ16", "0"), ("iidJ16", "1"), ("iidJ16", "2"))
    points = [line.get_xdata() for line in figure.axes[0].lines[1::2]]
    actual = interquartile_means(left)
    assert np.ravel(points) == pytest.approx([estimate.value for estimate in actual.values()])
    assert "; 3 settings (partition and J), 2 to 3 seeds in each; " in note(figure)
    # two of each of four seeds
    assert "; 8 runs left out, since not all strategies have their seed" in note(figure)


def test_a_diverged_run_has_the_lowest_accuracy(metrics: Metrics) -> None:
    """A guess among ten classes is right in 10 %; some finished runs are below that."""
    fate: Fate = {("iid", "J4", "loss", 1): ("diverged", 12)}
    figure = make_figure(spec_of("performance_profile"), metrics(fate))
    x, y = (np.asarray(data) for data in figure.axes[0].lines[1].get_data())
    everything = sample().query("metric == 'test_accuracy' and round == 12")
    rows = everything.query("strategy == 'loss'")
    others = rows[
        ~rows["digest"].isin(rows.query("partition == 'iid' and J == 'J4' and seed == 1")["digest"])
    ]
    lowest = 100 * everything["value"].min()
    assert lowest < 10
    values = [*(100 * others["value"]), lowest]
    np.testing.assert_allclose(y, [100 * np.mean(np.array(values) > limit) for limit in x])
    assert "a diverged run counts with the worst value" in note(figure)


def test_a_panel_for_each_partition(metrics: Metrics) -> None:
    figure = make_figure(spec_of("interval", columns="partition"), metrics())
    assert [axes.get_title() for axes in figure.axes] == ["dir-0.1", "iid"]
    rows = expected()
    for axes, settings in zip(
        figure.axes, (("dir-0.1J4", "dir-0.1J16"), ("iidJ4", "iidJ16")), strict=True
    ):
        kept = np.isin(np.array(rows.settings)[rows.positions], settings)
        mean = np.sort(rows.values[0, kept])  # six runs: half of the second and of the fifth
        middle = (mean[1] / 2 + mean[2] + mean[3] + mean[4] / 2) / 3
        assert axes.lines[1].get_xdata() == pytest.approx([middle])
    assert "; 2 settings (J), 3 seeds in each; " in note(figure)


@pytest.mark.parametrize("kind", ["interval", "win_rates"])
def test_panels_name_their_own_strategies(metrics: Metrics, kind: str) -> None:
    gone: Fate = {("iid", J, "loss", seed): ("missing", 0) for J in WORK for seed in SEEDS}
    skewed, iid = make_figure(spec_of(kind, columns="partition"), metrics(gone)).axes
    assert names_of(skewed) == NAMES
    assert names_of(iid) == ["FedAvg (random)", "FedEntOpt"]
    if kind == "win_rates":
        assert [len(axes.get_xticklabels()) for axes in (skewed, iid)] == [3, 2]


def test_on_a_phone_panels_name_their_own_ranks(metrics: Metrics) -> None:
    spec = spec_of("critical_difference", columns="J")
    panels = make_figure(spec, metrics(), is_narrow=True).axes
    for axes in panels:
        points = [float(line.get_xdata()[0]) for line in axes.lines[: len(NAMES)]]
        written = [float(name.rpartition(" ")[2]) for name in names_of(axes)]
        assert written == pytest.approx(points, abs=0.005)
    assert names_of(panels[0]) != names_of(panels[1])


def test_without_a_strategy(metrics: Metrics) -> None:
    figure = make_figure(spec_of("win_rates", without={"strategy": "loss"}), metrics())
    assert names_of(figure.axes[0]) == ["FedAvg (random)", "FedEntOpt"]
    assert note(figure).startswith("24 runs; ")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_in_common(metrics: Metrics, kind: str) -> None:
    gone = {
        (partition, J, strategy, seed): ("missing", 0)
        for partition in PARTITIONS
        for J in WORK
        for index, strategy in enumerate(STRATEGIES)
        for seed in SEEDS
        if seed != index
    }
    figure = make_figure(spec_of(kind), metrics(gone))
    reason = "no seed of a setting that all strategies have"
    assert [text.get_text() for text in figure.axes[0].texts] == [reason]
    assert reason in note(figure)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("interval", "FedAvg (random) {0:.2f} ("),
        ("critical_difference", "critical difference 1.66, Friedman's p = "),
        ("win_rates", "Percent of runs: FedAvg (random) ahead of Highest loss "),
        ("performance_profile", "Half of the runs are better than FedAvg (random) "),
    ],
)
def test_in_words(metrics: Metrics, kind: str, text: str) -> None:
    spec = spec_of(kind)
    comparison = compare_figure(spec, metrics())
    assert len(parts := comparison.description) == 1
    assert alternative_text(spec, comparison).endswith(f". {parts[0]}.")
    assert text.format(interquartile_means(expected())["fedavg"].value) in parts[0]
    panels = kind_of(spec_of(kind, columns="partition"))
    parts = panels.describe(read_metric(metrics(), "test_accuracy"), Names.of(LOOK))
    assert [words.partition(": ")[0] for words in parts] == ["dir-0.1", "iid"]


def test_runs_of_many_settings_are_no_seeds_of_one_another(metrics: Metrics) -> None:
    """Their comparison has all runs and means, but no word on them and no difference."""
    comparison = compare_figure(spec_of("interval"), metrics())
    assert [len(result.values) for result in comparison.results] == [12, 12, 12]
    assert not any(result.best or result.against for result in comparison.results)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"metric": "update_norm"}, "neither high nor low is better"),
        ({"limits": [0, 100]}, "leave out limits"),
    ],
)
def test_fields_that_contradict_each_other(kind: str, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        kind_of(spec_of(kind, **fields)).check()


def test_strategies_without_a_setting_in_common() -> None:
    cells = [
        {"strategy": "a", "partition": "iid", "selector.buffer": None, "seed": 0},
        {"strategy": "b", "partition": "iid", "selector.buffer": 0.5, "seed": 0},
        {"strategy": "c", "partition": "iid", "selector.buffer": None, "seed": 0},
    ]
    axes = list(cells[0])
    with pytest.raises(UserError, match="compares a, b and c, but no setting"):
        kind_of(spec_of("interval")).check_cells(axes, cells)
    kind_of(spec_of("interval", without={"strategy": ["b"]})).check_cells(axes, cells)
