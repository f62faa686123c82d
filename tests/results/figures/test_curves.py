"""Curves over rounds and over costs, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cohort.results.comparison import compare
from cohort.results.figures import KINDS
from cohort.results.figures.draw import make_figure
from cohort.results.figures.kinds import means
from cohort.results.figures.kinds.means import CostCurves, Curves, mean_over_cost
from cohort.results.figures.theme import COLORS
from cohort.results.series import write_metrics
from tests.results.figures.samples import NAMES, Draw, Metrics, Spec, accuracy, frame_of, note

PAPER = """\
item,source,doubtful,dataset,model,partition,J,strategy,other,metric,at,round,value,sd
Fig3,authors' log,,digits,mlp,dir-0.1,J4,loss,,test_accuracy,40,40,0.9,
Fig3,authors' log,,digits,mlp,dir-0.1,J4,loss,,test_accuracy,1,1,0.25,
Fig3,authors' log,,digits,mlp,dir-0.1,J4,loss,,test_accuracy,12,12,0.5,
Fig3,authors' log,unsure of the seed,digits,,iid,,fedavg,,test_accuracy,2,2,0.125,
Fig3,authors' log,,digits,lenet5,iid,J4,loss,,test_accuracy,2,2,0.75,
Fig3,authors' log,,digits,mlp,dir-0.1,J4,loss,,test_loss,2,2,3,
"""
SECONDS = {0: [1, 1, 1, 1], 1: [2, 2, 2, 2]}  # of each round, by seed
ACCURACY = {0: {2: 0.2, 4: 0.6}, 1: {2: 0.4, 4: 0.8}}  # by seed and evaluated round


def test_curves_are_mean_and_standard_deviation_over_seeds(spec: Spec, metrics: Metrics) -> None:
    axes = make_figure(spec, metrics()).axes[0]
    assert axes.get_title() == "dir-0.1, J = 4 local steps"
    values = accuracy("dir-0.1", "J4", "loss")
    curves = (line for line in axes.lines if line.get_color() == COLORS[1])
    line = next(line for line in curves if len(line.get_xdata()) == 6)
    np.testing.assert_array_equal(line.get_xdata(), [2, 4, 6, 8, 10, 12])
    np.testing.assert_allclose(line.get_ydata(), values.mean(axis=0))
    band = axes.collections[1].get_paths()[0].vertices
    for column, round in ((0, 2), (-1, 12)):
        heights, mean = band[band[:, 0] == round, 1], values.mean(axis=0)[column]
        deviation = values.std(axis=0, ddof=1)[column]
        ends = [mean - deviation, mean + deviation]
        np.testing.assert_allclose([heights.min(), heights.max()], ends)


def test_a_band_can_be_the_interval_of_the_mean(spec: Spec, metrics: Metrics) -> None:
    """Of three seeds: 4.303 standard errors, the quantile of Student's t with two degrees."""
    figure = make_figure(spec | {"band": "interval"}, metrics())
    band = figure.axes[0].collections[1].get_paths()[0].vertices
    last = accuracy("dir-0.1", "J4", "loss")[:, -1]
    half = 4.302653 * last.std(ddof=1) / np.sqrt(3)
    ends = [max(last.mean() - half, 0), min(last.mean() + half, 100)]
    heights = band[band[:, 0] == 12, 1]
    np.testing.assert_allclose([heights.min(), heights.max()], ends, rtol=1e-6)
    assert "band: 95 % interval of the mean over seeds" in note(figure)


def test_curves_named_at_their_ends_have_names_apart_and_no_legend(drawn: Draw) -> None:
    """Two ends 0.1 points apart and one far away: the two names move apart, about their middle."""
    ends = {"s0": 0.5, "s1": 0.501, "s2": 0.9}
    runs = [({"strategy": name}, {1: 0.1, 2: end}) for name, end in ends.items()]
    figure = drawn(runs, direct=True, limits=[0, 100])
    names = {text.get_text(): text.xyann for text in figure.axes[0].texts}
    assert set(names) == set(ends) and not figure.legends
    lines = {text.get_text(): text.xy for text in figure.axes[0].texts}
    assert lines == {name: (2, pytest.approx(100 * end)) for name, end in ends.items()}
    assert names["s1"][1] - names["s0"][1] > 5 and names["s2"][1] == pytest.approx(90)
    assert (names["s0"][1] + names["s1"][1]) / 2 == pytest.approx(50.05)


@pytest.mark.parametrize(
    ("window", "runs", "smooth"),
    [
        (3, {"a": [1, 2, 6, 4]}, [1.5, 3, 4, 5]),  # shorter windows at the ends
        (5, {"a": [7]}, [7]),
        (3, {"a": [1, 3], "b": [100, 300]}, [2, 2, 200, 200]),  # within a run
    ],
)
def test_smoothing(window: int, runs: dict[str, list[float]], smooth: list[float]) -> None:
    rows = [
        {"digest": digest, "metric": "test_loss", "round": round, "value": float(value)}
        for digest, values in runs.items()
        for round, value in enumerate(values, start=1)
    ]
    curves = Curves(metric="test_loss", smoothing=window).measure(pd.DataFrame(rows))
    assert curves["value"].tolist() == smooth


@pytest.mark.parametrize(
    ("last", "share", "points"),
    [
        (30, 1.0, [(10, 5.5), (20, 15.5), (30, 25.5)]),  # the mean of rounds 1 to 10
        (29, None, [(10, 5.5), (20, 15.5)]),  # a bucket that a run ended within is left out
        (9, 1.0, []),
        (6, 0.2, [(2, 1.5), (4, 3.5), (6, 5.5)]),  # of a fifth of the rounds, two are a bucket
        (2, 0.01, [(1, 1.0), (2, 2.0)]),
    ],
)
def test_buckets(last: int, share: float | None, points: list[tuple[int, float]]) -> None:
    """Of a run whose accuracy in round r is r percent; of another one beside it the same."""
    rows = pd.DataFrame(
        {"digest": digest, "metric": "test_accuracy", "round": round, "value": round / 100}
        for digest in "ab"
        for round in range(1, last + 1)
    )
    rows = rows if share is None else rows.assign(share=share)
    curves = Curves(metric="test_accuracy", buckets=10).measure(rows)
    for digest in "ab":
        run = curves[curves["digest"] == digest]
        assert list(zip(run["round"], run["value"].round(9), strict=True)) == points


def test_some_curves_are_dashed_and_the_axis_is_called_as_the_procedure_does(drawn: Draw) -> None:
    runs = [({"strategy": name}, {1: 0.1, 2: 0.2}) for name in ("a", "b")]
    figure = drawn(runs, dashed=["b"], style={"round": "Epoch"})
    assert [handle.is_dashed() for handle in figure.legends[0].legend_handles] == [False, True]
    assert figure.axes[0].get_xlabel() == "Epoch"


@pytest.fixture
def with_paper(spec: Spec, tmp_path: Path) -> Spec:
    (tmp_path / "curves.csv").write_text(PAPER)
    return spec | {"paper": "Fig3", "paper_values": str(tmp_path / "curves.csv"), "scale": "full"}


def paper_lines(figure: Figure) -> dict[str, list[Line2D]]:
    """The diamonds or thin dashed lines, by the title of their panel."""
    return {
        axes.get_title(): [
            line
            for line in axes.lines
            if (line.get_marker() == "D" or line.get_linewidth() == 0.8) and len(line.get_xdata())
        ]
        for axes in figure.axes
    }


def test_a_papers_curve_is_in_its_panel_and_in_the_color_of_its_hue(
    with_paper: Spec, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = make_figure(with_paper, metrics())
    first, second, third, fourth = paper_lines(figure).values()
    assert [len(lines) for lines in (first, second, third, fourth)] == [1, 1, 0, 1]
    assert list(first[0].get_xdata()) == [1, 12, 40] and list(first[0].get_ydata()) == [25, 50, 90]
    assert (first[0].get_color(), fourth[0].get_color()) == (COLORS[1], COLORS[0])
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == [*NAMES, "paper (authors' log)"]
    (named,) = make_figure(with_paper | {"direct": True}, metrics()).legends
    assert [text.get_text() for text in named.get_texts()] == legend[-1:]
    assert "some of the paper's values are doubtful: unsure of the seed" in note(figure)
    assert (first[0].get_marker(), first[0].get_linestyle()) == ("D", "None")
    monkeypatch.setattr(means, "FEW_POINTS", 2)
    first, *_ = paper_lines(make_figure(with_paper, metrics())).values()
    assert first[0].is_dashed(), "many points are a line"


@pytest.mark.parametrize(
    ("changes", "rounds"),
    [({"until": 12}, [1, 12]), ({"scale": "smoke"}, [1, 12]), ({"until": 10}, [1])],
)
def test_a_papers_curve_ends_with_ours(
    with_paper: Spec, metrics: Metrics, changes: Spec, rounds: list[int]
) -> None:
    figure = make_figure(with_paper | changes, metrics())
    assert list(paper_lines(figure)["dir-0.1, J = 4 local steps"][0].get_xdata()) == rounds
    ours = {round for axes in figure.axes for line in axes.lines for round in line.get_xdata()}
    assert max(ours) == changes.get("until", 12)
    remark = "scale smoke: a cheaper version of the study"
    assert (remark in note(figure)) == ("scale" in changes)


def test_a_papers_curve_is_compared_where_ours_ends(with_paper: Spec, metrics: Metrics) -> None:
    kind = KINDS["curves"].from_spec(with_paper)
    results = compare(kind.measures(), with_paper, metrics()).results
    assert {result.paper.round for result in results if result.paper} == {12}  # of 1, 12 and 40


def costs(status: str = "done") -> pd.DataFrame:
    """Two runs with rounds of different length; `status` is that of the first."""
    rows = []
    for seed, durations in SECONDS.items():
        cell: Spec = {"digest": f"k{seed}", "strategy": "fedavg", "seed": str(seed)}
        cell |= {"status": status if seed == 0 else "done"}
        values = [("simulated_seconds", *pair) for pair in enumerate(durations, start=1)]
        values += [("test_accuracy", *pair) for pair in ACCURACY[seed].items()]
        for metric, round, value in values:
            rows.append(cell | {"metric": metric, "round": round, "value": float(value)})
    return frame_of(rows)


def test_a_value_counts_from_the_cost_at_which_it_was_measured() -> None:
    """Seed 0 is evaluated after 2 and 4 s, seed 1 after 4 and 8 s: both have values from 4 s on,
    and seed 0, which ends there, keeps its last one."""
    rows = CostCurves(metric="test_accuracy").measure(costs())
    assert rows.sort_values(["digest", "round"])["spent"].tolist() == [2, 4, 4, 8]
    values = mean_over_cost(rows)
    assert (values.index[0], values.index[-1]) == (4, 8)
    assert values["mean"].iloc[[0, -1]].tolist() == pytest.approx([50, 70])
    assert values["std"].iloc[0] == pytest.approx(np.sqrt(200))


@pytest.mark.parametrize("status", ["diverged", "unfinished"])
def test_a_run_that_stopped_keeps_its_last_value_while_others_go_on(status: str) -> None:
    values = mean_over_cost(CostCurves(metric="test_accuracy").measure(costs(status)))
    assert (values.index[-1], values["mean"].iloc[-1]) == (8, pytest.approx(70))  # of 60 and 80 %


def test_a_figure_over_costs_averages_the_latest_and_names_the_cost(tmp_path: Path) -> None:
    rows = CostCurves(metric="test_accuracy", smoothing=2).measure(costs())
    smooth = rows.sort_values(["digest", "round"])["value"].tolist()
    assert smooth == pytest.approx([20, 40, 40, 60])
    write_metrics(tmp_path / "costs.parquet", costs().assign(classes=10), {})
    style = {"orders": {"strategy": ["fedavg"]}, "strategies": ["fedavg"]}
    spec = {"kind": "cost_curves", "metric": "test_accuracy", "style": style}
    (axes,) = make_figure(spec, tmp_path / "costs.parquet").axes
    assert axes.get_xlabel() == "Simulated time (s)"
