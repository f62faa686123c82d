"""Lines over the values of a label: positions, means and marks, read from matplotlib's artists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cohort.results.figures.draw import draw, make_figure
from cohort.results.figures.kinds.bars import Lines
from cohort.results.figures.kinds.curves import Curves
from cohort.results.figures.style import COLORS
from cohort.results.files import write_metrics

STRATEGIES = ["fedavg", "loss"]
LOOK: dict[str, Any] = {
    "orders": {"cohort": [4, 5, 9], "strategy": STRATEGIES, "seed": [0, 1]},
    "strategies": STRATEGIES,
    "titles": {"strategy": {"fedavg": "FedAvg"}},
}
SPEC = {
    "kind": "lines",
    "study": "s",
    "experiment": "main",
    "look": LOOK,
    "metric": "test_accuracy",
    "at": "last-10",
    "x": "cohort",
}
Write = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """Evaluate each cell in rounds 91 and 100; `status` is that of 9 clients with seed 1."""

    def write(status: str = "done") -> Path:
        rows: list[dict[str, Any]] = []
        for strategy in STRATEGIES:
            for cohort in (4, 5, 9):
                for seed in (0, 1):
                    digest = f"k{strategy}{cohort}{seed}"
                    cell = {
                        "digest": digest,
                        "study": "s",
                        "experiment": "main",
                        "cohort": cohort,
                        "strategy": strategy,
                        "seed": seed,
                    }
                    cell |= {
                        "status": status if (cohort, seed) == (9, 1) else "done",
                        "classes": 10,
                        "client": None,
                        "metric": "test_accuracy",
                    }
                    rows += [
                        cell | {"round": round, "value": (cohort + seed + round - 90) / 100}
                        for round in (50, 91, 100)
                    ]
        frame = pd.DataFrame(rows).astype({"metric": "string", "round": "Int64", "client": "Int64"})
        write_metrics(tmp_path / "metrics.parquet", frame, {})
        return tmp_path / "metrics.parquet"

    return write


def test_numbers_are_placed_at_their_values(written: Write) -> None:
    """The mean of rounds 91 and 100 is cohort + seed + 5.5, and half a point more for two seeds."""
    (axes,) = make_figure(SPEC, written()).axes
    line = next(line for line in axes.lines if len(line.get_xdata()) == 3)
    assert list(line.get_xdata()) == [4, 5, 9]
    assert list(line.get_ydata()) == pytest.approx([10, 11, 15])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["4", "5", "9"]
    assert axes.get_xlabel() == "Clients in a round"
    (low, high) = (
        axes.collections[0].get_paths()[0].vertices[:, 1].min(),
        axes.collections[0].get_paths()[0].vertices[:, 1].max(),
    )
    assert (low, high) == pytest.approx((10 - 0.5**0.5, 15 + 0.5**0.5))


def test_equal_factors_are_equally_far_apart_on_a_logarithmic_axis(written: Write) -> None:
    (axes,) = make_figure(SPEC | {"log": True}, written()).axes
    low, middle, high = (axes.transData.transform((4, y))[1] for y in (10, 11, 12.1))
    assert high - middle == pytest.approx(middle - low)
    assert "10" in [text.get_text() for text in axes.get_yticklabels()]


def test_words_are_placed_one_after_another(written: Write) -> None:
    spec = SPEC | {"x": "strategy", "hue": "cohort"}
    (axes,) = make_figure(spec, written()).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["FedAvg", "loss"]
    assert list(axes.get_xticks()) == [0, 1]


@pytest.mark.parametrize(
    ("status", "markers", "remark"),
    [("diverged", {"x"}, ": a run diverged"), ("unfinished", {"o", "s"}, "unfinished runs")],
)
def test_incomplete_runs_are_marked(
    written: Write, status: str, markers: set[str], remark: str
) -> None:
    figure = make_figure(SPEC, written(status))
    marked = [
        line
        for line in figure.axes[0].lines
        if line.get_linestyle() == "None" and list(line.get_xdata()) == [9]
    ]
    assert {line.get_marker() for line in marked} == markers
    assert remark in figure.get_supxlabel().replace("\n", " ")


def test_a_papers_values_are_diamonds(written: Write, tmp_path: Path) -> None:
    head = "item,source,doubtful,cohort,strategy,other,metric,at,round,value,sd\n"
    (tmp_path / "paper.csv").write_text(
        head + "TableI,printed,,9,loss,,test_accuracy,last-10,,0.6525,\n"
    )
    (axes,) = make_figure(
        SPEC | {"paper": "TableI", "paper_values": str(tmp_path / "paper.csv")}, written()
    ).axes
    diamonds = [line for line in axes.lines if line.get_marker() == "D" and len(line.get_xdata())]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in diamonds] == [
        ([9], [65.25])
    ]
    assert diamonds[0].get_color() == COLORS[1]


def test_the_reference_line_of_curves_and_lines(written: Write) -> None:
    for kind in ("lines", "curves"):
        fields = (
            {key: value for key, value in SPEC.items() if key not in ("at", "x")}
            if kind == "curves"
            else SPEC
        )
        spec = fields | {
            "kind": kind,
            "hue": "cohort" if kind == "curves" else "strategy",
            "reference": 12.5,
            "reference_label": "here",
        }
        spec |= {"columns": "strategy"} if kind == "curves" else {}
        for axes in make_figure(spec, written()).axes:
            (line,) = [line for line in axes.lines if line.get_label() == "here"]
            assert list(line.get_ydata()) == [12.5, 12.5]


def test_the_reference_is_for_the_first_metric_only() -> None:
    first, second = Curves(metric="cohort_entropy", also=["test_loss"], reference=3.17).by_metric()
    assert (first.reference, second.reference) == (3.17, None)  # type: ignore[attr-defined]


def test_runs_are_distinguished_by_x() -> None:
    assert Lines(metric="test_accuracy", x="cohort", rows="model").shown() == (
        "model",
        "strategy",
        "cohort",
    )


def test_it_is_saved_in_every_format(written: Write, tmp_path: Path) -> None:
    draw(SPEC, written(), [tmp_path / f"figure.{ending}" for ending in ("png", "pdf")])
    assert (tmp_path / "figure.png").stat().st_size > 5000
