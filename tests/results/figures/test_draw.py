"""A figure says what stands behind it, and the same numbers give the same bytes."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from cohort.results.comparison import Comparison
from cohort.results.figures import theme
from cohort.results.figures.draw import draw, make_figure
from cohort.results.figures.kinds.means import STOPPED
from cohort.results.report.page import alternative_text
from cohort.results.series import write_metrics
from tests.results.figures.samples import (
    NAMES,
    PARTITIONS,
    SEEDS,
    STRATEGIES,
    WORK,
    Fate,
    Metrics,
    Spec,
    accuracy,
    note,
    sample,
)

MISSING: Fate = dict.fromkeys(
    itertools.product(PARTITIONS, WORK, STRATEGIES, SEEDS), ("missing", 0)
)


def texts(figure: Figure) -> list[str]:
    labels = [text.get_text() for axes in figure.axes for text in [*axes.texts, axes.title]]
    return [*labels, *(text.get_text() for key in figure.legends for text in key.get_texts())]


def test_an_incomplete_run_is_drawn_up_to_its_last_round(spec: Spec, metrics: Metrics) -> None:
    stopped: Fate = {("dir-0.1", "J4", "fedavg", 0): ("diverged", 6)}
    figure = make_figure(spec, metrics(stopped | {("iid", "J4", "loss", 1): ("unfinished", 4)}))
    solid, dotted, crosses = figure.axes[0].lines[:3]
    values = accuracy("dir-0.1", "J4", "fedavg")
    np.testing.assert_allclose(solid.get_ydata(), values.mean(axis=0)[:3])
    np.testing.assert_allclose(dotted.get_ydata()[1:], values[1:].mean(axis=0)[3:])
    assert dotted._dash_pattern[1] == [part * dotted.get_linewidth() for part in STOPPED[1]]
    assert (crosses.get_marker(), list(crosses.get_xdata())) == ("x", [6])
    assert note(figure) == (
        "n = 34 of 36 runs (1 diverged, 1 unfinished); 3 seeds per curve; band: ± 1 SD over seeds; unfinished runs included; ×: a run diverged; dotted: fewer runs"
    )


def test_no_cross_where_a_curve_is_cut(spec: Spec, metrics: Metrics) -> None:
    figure = make_figure(
        spec | {"until": 4}, metrics({("dir-0.1", "J4", "fedavg", 0): ("diverged", 6)})
    )
    assert not [
        line for line in figure.axes[0].lines if line.get_marker() == "x" and len(line.get_xdata())
    ]


def test_diverged_runs_cross_a_bar(bars: Spec, metrics: Metrics) -> None:
    fate: Fate = {("dir-0.1", "J4", "fedavg", 0): ("unfinished", 6)}
    figure = make_figure(bars, metrics(fate | {("iid", "J4", "loss", 1): ("diverged", 4)}))
    assert [text.get_text() for text in figure.axes[0].texts] == ["×"]
    assert "unfinished runs included" in note(figure)


@pytest.mark.parametrize("kind", ["spec", "bars"])
def test_a_figure_without_any_run_says_so(
    kind: str, request: pytest.FixtureRequest, metrics: Metrics
) -> None:
    figure = make_figure(request.getfixturevalue(kind), metrics(MISSING))
    assert texts(figure).count("no runs yet") == len(figure.axes)
    assert note(figure) == "n = 0 of 36 runs (36 missing)"


def test_panels_and_hues_without_runs_are_left_out(spec: Spec, metrics: Metrics) -> None:
    gone = {
        key: how for key, how in MISSING.items() if key[:2] == ("iid", "J4") or key[2] == "loss"
    }
    figure = make_figure(spec, metrics(gone))
    titles = [axes.get_title() for axes in figure.axes]
    assert len(titles) == 3 and "iid, J = 4 local steps" not in titles
    assert texts(figure)[-2:] == [NAMES[0], NAMES[2]] and NAMES[1] not in texts(figure)
    gone = {key: how for key, how in MISSING.items() if key[1] == "J16"}
    figure = make_figure(spec, metrics(gone))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["dir-0.1, J = 4 local steps", "iid, J = 4 local steps"]
    assert note(figure).startswith("n = 3 seeds per curve; ")
    assert "2 panels without enough runs left out" in note(figure)


def test_the_alternative_text_is_the_title_and_the_means(
    spec: Spec, metrics: Metrics, tmp_path: Path
) -> None:
    """The means if it shows nothing else: neither panels nor moving averages."""
    plain = spec | {"rows": None, "columns": None, "pooled": ["partition", "J"]}
    texts_of = {}
    for name, each in {"panels": spec, "plain": plain, "moving": plain | {"smoothing": 3}}.items():
        draw(each, metrics(), [tmp_path / "figure.json"])
        texts_of[name] = alternative_text(each, Comparison.read(tmp_path / "figure.json"))
    values = [accuracy(name, J, "fedavg")[:, -1].mean() for name in PARTITIONS for J in WORK]
    start = f"Costs $5 & <more>. Means of Test accuracy (%): {NAMES[0]} {np.mean(values):.2f}; "
    assert texts_of["plain"].startswith(start) and texts_of["plain"].count(";") == 2
    assert texts_of["panels"] == texts_of["moving"] == "Costs $5 & <more>."


@pytest.mark.parametrize("kind", ["spec", "bars"])
def test_the_same_numbers_give_the_same_bytes(
    kind: str, request: pytest.FixtureRequest, metrics: Metrics, tmp_path: Path
) -> None:
    """Whatever the order of their rows, matplotlib's settings, and the process."""
    spec, before = request.getfixturevalue(kind), dict(matplotlib.rcParams)
    font = matplotlib.font_manager.findfont(theme.FONT)
    assert Path(font).is_relative_to(matplotlib.get_data_path())
    titles = {"strategy": {"loss": r"no $\wrong$ formula"}}
    spec |= {"style": spec["style"] | {"titles": titles}}
    formats = (".png", ".pdf", ".json", "-narrow.png")
    here, there = ([tmp_path / f"{name}{ending}" for ending in formats] for name in "ab")
    draw(spec, metrics(), here)
    written = [file.read_bytes() for file in here]
    assert dict(matplotlib.rcParams) == before and b"CreationDate" not in written[1]
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red"}):
        draw(spec, metrics(shuffle=1), here)
    assert [file.read_bytes() for file in here] == written
    code = f"from cohort.results.figures.draw import draw; draw({spec!r}, {str(metrics())!r}, {list(map(str, there))!r})"
    environment = os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert [file.read_bytes() for file in there] == written
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize("also", [None, ["train_loss"]])
def test_a_narrow_figure_stacks_its_panels(spec: Spec, metrics: Metrics, also: list[str]) -> None:
    spec |= {"also": also}
    wide, narrow = (make_figure(spec, metrics(), narrow=narrow) for narrow in (False, True))
    (width, _), left = narrow.get_size_inches(), {axes.get_position().x0 for axes in narrow.axes}
    assert width <= theme.MAX_WIDTH < wide.get_figwidth()
    assert len(narrow.axes) == len(wide.axes) and len(left) == 1
    titles = [sorted(axes.get_title() for axes in figure.axes) for figure in (wide, narrow)]
    assert titles[0] == titles[1]


def test_runs_of_others_are_named_below_a_figure(spec: Spec, metrics: Metrics) -> None:
    """Those of this repository's releases are not, unless these had them from others."""
    file, ours = metrics(), "resources/released/demo"
    origins = [[], [ours], [ours, "by/hand"], [f"{ours} (there from by/hand)"]]
    cells = [
        {"digest": f"k{n}", "settings": {"strategy": f"s{n}"}, "restored": names}
        for n, names in enumerate(origins)
    ]
    write_metrics(file, sample(), {"cells": cells})
    text = " ".join(note(make_figure(spec, file)).split())
    assert f"restored from {ours} and by/hand: 1 of 4 finished runs (s2)" in text
    assert f"restored from {ours} (there from by/hand): 1 of 4 finished runs (s3)" in text
    assert "s0" not in text and "s1" not in text
