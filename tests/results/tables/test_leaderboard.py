"""A leaderboard of three strategies in two settings with two seeds each, worked out by hand and, for the bootstrap, by enumeration."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cohort.core.errors import UserError
from cohort.results.comparison import Comparison, Leaderboard
from cohort.results.names import Names
from cohort.results.series import write_metrics
from cohort.results.statistics import Standing
from cohort.results.tables.tabulate import lay_out_leaderboard, tabulate

ACCURACY = {  # by strategy, setting and seed
    "fedavg": {"iid": (0.90, 0.92), "dir-0.1": (0.50, 0.60)},
    "ucb": {"iid": (0.91, 0.90), "dir-0.1": (0.65, 0.59)},
    "loss": {"iid": (0.80, 0.82), "dir-0.1": (0.40, 0.70)},
}
STYLE = {
    "orders": {"strategy": ["fedavg", "ucb", "loss"]},
    "titles": {"strategy": {"ucb": "Team Darts"}},
}
SPEC = {"kind": "leaderboard", "experiment": "main", "metric": "test_accuracy"}
SPEC |= {"also": ["never_selected"], "style": STYLE}
NO_RANKING = (  # chi-squared is 1.75 / 0.875, since two share a rank, and p is exp(-1)
    "No ranking: over these settings Friedman's test finds no difference between the strategies "
    "(p = 0.368)."
)


def rows(strategy: str, setting: str, seed: int, accuracy: float) -> list[dict[str, Any]]:
    run: dict[str, Any] = {"digest": f"k{strategy}{setting}{seed}", "study": "s", "client": None}
    run |= {"experiment": "main", "status": "done"}
    run |= {"strategy": strategy, "partition": setting, "seed": seed, "round": 4}
    values = {"test_accuracy": accuracy, "never_selected": float(len(strategy))}
    return [run | {"metric": metric, "value": value} for metric, value in values.items()]


def board(folder: Path, spec: dict[str, Any] = SPEC, lacking: str = "") -> Comparison:
    table = [
        row
        for strategy, settings in ACCURACY.items()
        for setting, accuracies in settings.items()
        for seed, accuracy in enumerate(accuracies)
        for row in rows(strategy, setting, seed, accuracy)
        if f"{strategy} {setting} {seed}" != lacking
    ]
    frame = pd.DataFrame(table).astype({"round": "Int64", "client": "Int64"})
    write_metrics(folder / "metrics.parquet", frame, {})
    tabulate(spec, folder / "metrics.parquet", [folder / "board.json", folder / "board.csv"])
    return Comparison.read(folder / "board.json")


def standings(comparison: Comparison) -> list[Standing]:
    assert comparison.standings
    return comparison.standings.entries


def position_interval(strategy: str) -> tuple[float, float]:
    """Of two seeds a resample takes one in each setting, so that there are four resamples in all, equally often."""
    positions = []
    for seeds in itertools.product((0, 1), repeat=2):
        totals = dict.fromkeys(ACCURACY, 0.0)
        for setting, seed in zip(("iid", "dir-0.1"), seeds, strict=True):
            values = sorted(
                (settings[setting][seed] for settings in ACCURACY.values()), reverse=True
            )
            for name, settings in ACCURACY.items():
                totals[name] += values.index(settings[setting][seed]) + 1
        positions.append(1 + sum(total < totals[strategy] for total in totals.values()))
    low, high = np.quantile(np.repeat(positions, 1250), [0.025, 0.975])
    return float(low), float(high)


def test_strategies_are_ranked_by_their_mean_rank_over_settings(tmp_path: Path) -> None:
    comparison = board(tmp_path)
    # IID: fedavg 0.91, ucb 0.905, loss 0.81. Dir(0.1): ucb 0.62, and 0.55 for both others, which share ranks 2 and 3.
    ucb, fedavg, loss = standings(comparison)
    assert [entry.strategy for entry in (ucb, fedavg, loss)] == ["ucb", "fedavg", "loss"]
    assert [entry.mean_rank for entry in (ucb, fedavg, loss)] == [1.5, 1.75, 2.75]
    for rank, entry in enumerate((ucb, fedavg, loss), 1):
        assert entry.rank.value == rank
        assert entry.rank.interval == pytest.approx(position_interval(entry.strategy), abs=1e-9)
    # Ahead of FedAvg: ucb in the first seed of each setting, loss in the second one of Dir(0.1).
    assert ucb.ahead and loss.ahead and fedavg.ahead is None
    assert (ucb.ahead.value, loss.ahead.value) == (0.5, 0.25)
    # Minus FedAvg, by seed: ucb 0.08 and -0.015, loss -0.10 and 0. The quantile of one degree of freedom is 12.7062.
    assert ucb.difference and loss.difference and loss.difference.interval
    assert ucb.difference.value == pytest.approx(0.0325)
    assert loss.difference.interval[0] == pytest.approx(-0.05 - 0.05 * 12.7062, abs=1e-5)
    scores = [entry.score for entry in (ucb, fedavg, loss)]
    assert scores == pytest.approx([(0.905 + 0.62) / 2, (0.91 + 0.55) / 2, (0.81 + 0.55) / 2])
    csv = pd.read_csv(tmp_path / "board.csv")
    assert csv["rank.value"].tolist() == [1, 2, 3]
    assert csv["difference.low"].tolist()[2] == pytest.approx(loss.difference.interval[0])

    layout = lay_out_leaderboard(comparison, Names.of(STYLE))
    texts, entries = layout.rows[0]
    assert texts == ["Team Darts"]
    assert layout.columns[0] == "Mean rank" and entries[0].value == "1.5"
    assert entries[0].labels == {"strategy": "ucb"}, "leads to its runs"
    assert layout.columns[1:3] == ["Test accuracy (%)", "minus FedAvg"]
    assert [entry.lines for entry in entries[1:3]] == [["76.25"], ["+3.25", "[-57.10, +63.60]"]]
    assert layout.columns[3:] == ["Ahead of FedAvg (%)", "Clients never chosen"]
    assert not any("**" in entry.value for entry in entries)
    assert layout.notes[0] == NO_RANKING
    assert "partition" in layout.notes[1]


def test_where_friedmans_test_finds_a_difference_there_are_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three settings with one order p is exp(-3), 0.0498; Nemenyi's difference, 1.91, tells the third one apart."""
    settings = ("iid", "dir-0.1", "dir-0.5")
    alike = {name: dict.fromkeys(settings, seeds) for name, seeds in
             {"fedavg": (0.5, 0.6), "ucb": (0.55, 0.65), "loss": (0.1, 0.2)}.items()}  # fmt: skip
    monkeypatch.setitem(globals(), "ACCURACY", alike)
    comparison = board(tmp_path)
    layout = lay_out_leaderboard(comparison, Names.of(STYLE))
    assert layout.columns[:2] == ["Rank", "Mean rank"]
    ranks = [row[1][0] for row in layout.rows]
    assert [(entry.value, entry.interval) for entry in ranks] == [
        ("**1**", "[1, 1]"), ("**2**", "[2, 2]"), ("3", "[3, 3]"),
    ]  # fmt: skip
    assert "finds a difference (p = 0.05). Bold" in layout.notes[1]


def test_settings_strategies_and_runs_can_be_left_out(tmp_path: Path) -> None:
    comparison = board(tmp_path, SPEC | {"without": {"partition": ["iid"]}})
    assert [entry.rank.value for entry in standings(comparison)] == [1, 2, 2]
    assert {len(result.values) for result in comparison.results} == {2}, "nor in further means"
    comparison = board(tmp_path, SPEC | {"without": {"strategy": "ucb"}})
    assert [entry.strategy for entry in standings(comparison)] == ["fedavg", "loss"]
    assert not any(entry.leads for entry in standings(comparison)), "two are too few for a test"
    layout = lay_out_leaderboard(comparison, Names.of(STYLE))
    assert layout.columns[0] == "Rank" and "Bold" not in " ".join(layout.notes)
    comparison = board(tmp_path, lacking="loss iid 1")
    assert comparison.standings
    assert (comparison.standings.left_out, comparison.standings.runs) == (2, 3)
    assert "2 runs left out" in str(lay_out_leaderboard(comparison, Names.of(STYLE)).notes)


def test_what_nobody_is_better_at_ranks_nobody() -> None:
    with pytest.raises(UserError, match="neither high nor low is better"):
        Leaderboard(metric="update_norm").check()
    with pytest.raises(UserError, match="also names the metric 'nothing'"):
        Leaderboard(metric="test_accuracy", also=["nothing last"]).check()
