"""A paper's values in a figure: their panel and color, and when they are left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cohort.core.components import schema_of
from cohort.core.errors import UserError
from cohort.results.figures.draw import make_figure
from cohort.results.figures.kinds.bars import Bars
from cohort.results.figures.kinds.curves import Curves
from cohort.results.figures.style import COLORS, PAPER_GRAY
from cohort.results.files import write_metrics
from tests.results.figures.samples import sample

Metrics = Callable[..., Path]
Spec = dict[str, Any]
CURVES = """\
item,source,doubtful,dataset,model,partition,J,strategy,other,metric,at,round,value,sd
Fig3,authors' log,,digits,mlp,dir-0.1,J4,loss,,test_accuracy,40,40,0.9,
Fig3,authors' log,,digits,mlp,dir-0.1,J4,loss,,test_accuracy,1,1,0.25,
Fig3,authors' log,,digits,mlp,dir-0.1,J4,loss,,test_accuracy,12,12,0.5,
Fig3,authors' log,unsure of the seed,digits,,iid,,fedavg,,test_accuracy,2,2,0.125,
Fig3,authors' log,,digits,lenet5,iid,J4,loss,,test_accuracy,2,2,0.75,
Fig3,authors' log,,digits,mlp,dir-0.1,J4,loss,,test_loss,2,2,3,
"""
ENDS = """\
item,source,doubtful,partition,J,strategy,other,metric,at,round,value,sd
Fig7,printed,,iid,J16,loss,,test_accuracy,last,,0.75,
Fig7,printed,,dir-0.1,J16,fedavg,,test_accuracy,max,,0.125,
"""


@pytest.fixture
def curves(spec: Spec, tmp_path: Path) -> Spec:
    (tmp_path / "curves.csv").write_text(CURVES)
    return spec | {"paper": "Fig3", "paper_values": str(tmp_path / "curves.csv"), "scale": "full"}


@pytest.fixture
def ends(bars: Spec, tmp_path: Path) -> Spec:
    (tmp_path / "ends.csv").write_text(ENDS)
    return bars | {"paper": "Fig7", "paper_values": str(tmp_path / "ends.csv")}


def paper_lines(figure: Figure) -> dict[str, list[Line2D]]:
    """The thin dashed lines with points, by the title of their panel."""
    return {
        axes.get_title(): [
            line
            for line in axes.lines
            if line.get_linewidth() == 0.8 and line.is_dashed() and len(line.get_xdata())
        ]
        for axes in figure.axes
    }


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_curve_that_begins_after_the_last_round_shown_is_left_out(
    curves: Spec, metrics: Metrics
) -> None:
    Path(curves["paper_values"]).write_text(CURVES.replace(",2,2,0.125", ",40,40,0.125"))
    lines = paper_lines(make_figure(curves | {"until": 10}, metrics()))
    assert [len(lines[f"{name}, J = 4 local steps"]) for name in ("dir-0.1", "iid")] == [1, 0]


def test_a_curve_is_in_its_panel_and_in_the_color_of_its_hue(
    curves: Spec, metrics: Metrics
) -> None:
    figure = make_figure(curves, metrics())
    lines = paper_lines(figure)
    assert {title: len(result) for title, result in lines.items()} == {
        "dir-0.1, J = 4 local steps": 1,
        "iid, J = 4 local steps": 1,
        "dir-0.1, J = 16 local steps": 0,
        "iid, J = 16 local steps": 1,
    }
    line = lines["dir-0.1, J = 4 local steps"][0]
    assert list(line.get_xdata()) == [1, 12, 40] and list(line.get_ydata()) == [25, 50, 90]
    assert line.get_color() == COLORS[1] and line.is_dashed()
    assert lines["iid, J = 16 local steps"][0].get_color() == COLORS[0]
    assert legend(figure) == [
        "FedAvg (random)",
        "Highest loss",
        "FedEntOpt",
        "paper (authors' log)",
    ]
    assert (
        "some of the paper's values are doubtful: unsure of the seed"
        in figure.get_supxlabel().replace("\n", " ")
    )


@pytest.mark.parametrize(("points", "marker"), [(1, "D"), (12, "D"), (13, "None")])
def test_a_few_points_of_a_paper_are_marked(
    curves: Spec, metrics: Metrics, points: int, marker: str
) -> None:
    """A single one would not be seen as a line."""
    row = "Fig3,printed,,digits,mlp,dir-0.1,J4,loss,,test_accuracy,{0},{0},0.5,"
    lines = [CURVES.splitlines()[0], *map(row.format, range(1, points + 1))]
    Path(curves["paper_values"]).write_text("\n".join(lines) + "\n")
    (line,) = paper_lines(make_figure(curves, metrics()))["dir-0.1, J = 4 local steps"]
    assert line.get_marker() == marker and len(line.get_xdata()) == points


def test_with_a_single_hue_the_papers_curve_is_gray(curves: Spec, tmp_path: Path) -> None:
    write_metrics(
        tmp_path / "one.parquet",
        sample().query("strategy == 'loss' and partition == 'dir-0.1' and J == 'J4'"),
        {},
    )
    rest = {key: value for key, value in curves.items() if key not in ("columns", "rows")}
    figure = make_figure(rest, tmp_path / "one.parquet")
    assert [line.get_color() for line in paper_lines(figure)[""]] == [PAPER_GRAY]
    assert figure.axes[0].lines[0].get_color() == COLORS[1]


def test_at_a_cheaper_scale_the_papers_curve_ends_with_ours(curves: Spec, metrics: Metrics) -> None:
    figure = make_figure(curves | {"scale": "smoke"}, metrics())
    assert list(paper_lines(figure)["dir-0.1, J = 4 local steps"][0].get_xdata()) == [1, 12]
    assert "scale smoke: a cheaper version of the study" in figure.get_supxlabel().replace(
        "\n", " "
    )


@pytest.mark.parametrize("kind", ["curves", "ends"])
def test_generated_data_is_never_compared_with_a_paper(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    frame = sample()
    write_metrics(
        tmp_path / "some.parquet",
        frame.assign(generated=frame["digest"] == frame["digest"].iloc[-1]),
        {},
    )
    figure = make_figure(request.getfixturevalue(kind), tmp_path / "some.parquet")
    assert not any(paper_lines(figure).values()) and not [
        word for word in legend(figure) if "paper" in word
    ]
    assert figure.get_supxlabel().endswith("generated stand-in data: no reproduction of any paper")


def test_a_bar_has_a_tick_at_the_papers_value(ends: Spec, metrics: Metrics) -> None:
    figure = make_figure(ends, metrics())
    ticks = [[line for line in axes.lines if line.get_linewidth() == 1.2] for axes in figure.axes]
    assert [axes.get_title() for axes in figure.axes] == [
        "J = 4 local steps",
        "J = 16 local steps",
    ]
    assert ticks[0] == []
    (tick,) = ticks[1]
    assert not tick.is_dashed()
    bar = figure.axes[1].patches[3]  # of the second strategy and partition, by strategy first
    assert list(tick.get_ydata()) == [75, 75]
    np.testing.assert_allclose(np.mean(tick.get_xdata()), bar.get_x() + bar.get_width() / 2)
    assert np.mean(tick.get_xdata()) == pytest.approx(1)  # the middle of the second partition
    assert legend(figure)[-1] == "paper"


def test_profiles_refuse_a_paper() -> None:
    with pytest.raises(UserError, match="leave paper out"):
        Bars(metric="selected", x="client", paper="Fig12").check()


def test_which_kinds_may_name_a_paper() -> None:
    jsonschema.validate({"metric": "test_loss", "paper": "Fig3"}, schema_of(Curves))
    jsonschema.validate({"metric": "test_loss", "x": "J", "paper": "Fig3"}, schema_of(Bars))


def test_the_column_generated_is_no_label(tmp_path: Path, spec: Spec) -> None:
    write_metrics(tmp_path / "metrics.parquet", sample().assign(generated=False), {})
    assert pd.read_parquet(tmp_path / "metrics.parquet")["generated"].dtype == bool
    assert (
        make_figure(spec, tmp_path / "metrics.parquet").get_supxlabel()
        == "n = 3 seeds per curve; band: ± 1 SD over seeds"
    )


def test_until_cuts_our_curves_and_the_papers(curves: Spec, metrics: Metrics) -> None:
    """The paper's curve has the rounds 1, 12 and 40."""
    figure = make_figure(curves | {"until": 12}, metrics())
    rounds = {round for axes in figure.axes for line in axes.lines for round in line.get_xdata()}
    assert max(rounds) == 12
    (line,) = paper_lines(figure)["dir-0.1, J = 4 local steps"]
    assert list(line.get_xdata()) == [1, 12]
    assert (
        max(
            round
            for axes in make_figure(curves, metrics()).axes
            for line in axes.lines
            for round in line.get_xdata()
        )
        > 12
    )
