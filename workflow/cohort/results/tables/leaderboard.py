"""Works out and lays out a leaderboard: strategies ranked across the settings of an experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.core.lazy import lazy
from cohort.core.metric import Metric
from cohort.core.text import counted
from cohort.results.across import Estimate, ordered_scores, runs_by_setting, values_left_out
from cohort.results.comparison import Comparison, compare
from cohort.results.names import METRICS, Names
from cohort.results.ranks import Standing, Standings, standings_of
from cohort.results.series import NO_VALUE, read_metric, runs_without
from cohort.results.tables.layout import DIVERGED, Entry, Layout, rounded, short_titles
from cohort.results.tables.spec import STRATEGY, Leaderboard

if TYPE_CHECKING:
    import pandas as pd
    from pandas import DataFrame
else:
    pd = lazy("pandas")

SHARE = Metric("Ahead of FedAvg", "%", 100, digits=0)


def compare_across(spec: Mapping[str, Any], metrics_file: str | Path) -> Comparison:
    """Compare a leaderboard's runs: each strategy's means over all settings, and standings."""
    board = Leaderboard.from_spec(spec)
    comparison = compare(board.measures(), spec, metrics_file)
    metrics = read_metric(metrics_file, board.metric)
    metrics = runs_without(metrics, values_left_out(board.without))
    runs = runs_by_setting(metrics, board.metric, board.at, board.shown())
    scores = ordered_scores(runs, STRATEGY, Names.of(spec["look"]), METRICS[board.metric].better)
    return replace(comparison, standings=standings_of(scores, runs))


def leaderboard_numbers(comparison: Comparison) -> DataFrame:
    """A leaderboard as a table of numbers in the metrics' stored units, a row per strategy, the
    best first; further measures have the column `metric at`."""
    standings = comparison.standings
    assert standings
    return pd.DataFrame([_row(entry, standings, comparison) for entry in standings.entries])


def _row(standing: Standing, standings: Standings, comparison: Comparison) -> dict[str, Any]:
    further = {
        f"{result.metric} {result.at}": result.sample.mean
        for result in comparison.results
        if result.labels[STRATEGY] == standing.strategy
    }
    apart = standing.difference
    return {
        "rank": standing.rank.value,
        **_ends("rank", standing.rank),
        "strategies": len(standings.entries),
        "strategy": standing.strategy,
        "mean_rank": standing.mean_rank,
        "leads": int(standing.leads),
        "interquartile_mean": standing.score.value,
        **_ends("interquartile_mean", standing.score),
        "ahead_of_fedavg": standing.ahead.value if standing.ahead else math.nan,
        **_ends("ahead_of_fedavg", standing.ahead),
        "minus_fedavg": apart.value if apart else math.nan,
        **_ends("minus_fedavg", apart),
        "settings": standings.settings,
        "runs": standings.runs,
        **further,
    }


def _ends(name: str, estimate: Estimate | None) -> dict[str, float]:
    low, high = (estimate and estimate.interval) or (math.nan, math.nan)
    return {f"{name}_low": low, f"{name}_high": high}


def lay_out_leaderboard(comparison: Comparison, names: Names) -> Layout:
    """Lay out a leaderboard as a table, a row per strategy, the best first."""
    standings, measures = comparison.standings, comparison.by_measure()
    assert standings
    first = next(iter(measures))
    metric = METRICS[measures.pop(first)[0].metric]
    signed = replace(metric, signed=True)
    points = " (points)" if metric.unit == "%" else ""
    layout = Layout(
        [names.title(STRATEGY)],
        [
            *("Rank", "Mean rank", f"{metric.label}, interquartile mean"),
            *(f"Minus FedAvg{points}", SHARE.label),
            *short_titles(measures),
        ],
    )
    for standing in standings.entries:
        own = {STRATEGY: standing.strategy}
        means = [
            Entry(rounded(result.sample.mean, METRICS[result.metric]), labels=own)
            for results in measures.values()
            for result in results
            if result.labels == own
        ]
        entries = [
            Entry() if standings.no_ranking else _rank(standing),
            Entry(f"{standing.mean_rank:.1f}"),
            replace(_estimated(standing.score, metric), labels=own),
            _estimated(standing.difference, signed),
            _estimated(standing.ahead, SHARE),
            *means,
        ]
        layout.lines.append(([names.value(STRATEGY, standing.strategy)], entries))
    layout.notes.extend(_notes(comparison, standings, first))
    return layout.condensed()


def _rank(standing: Standing) -> Entry:
    return Entry(
        f"{standing.rank.value:.0f}",
        best=standing.leads,
        interval=rank_interval(standing),
        labels={STRATEGY: standing.strategy},
    )


def rank_interval(standing: Standing) -> str:
    """The interval of a rank in whole ranks as text, `[1, 6]`; empty if there is none."""
    if standing.rank.interval is None:
        return ""
    low, high = standing.rank.interval
    return f"[{math.floor(low)}, {math.ceil(high)}]"


def rank_text(standing: Standing) -> str:
    """A rank with its interval as text: `3 [1, 6]`."""
    return f"{standing.rank.value:.0f} {rank_interval(standing)}".rstrip()


def _estimated(estimate: Estimate | None, metric: Metric) -> Entry:
    if estimate is None:
        return Entry(NO_VALUE)
    value = rounded(estimate.value, metric)
    if estimate.interval is None:
        return Entry(value)
    low, high = (rounded(end, metric) for end in estimate.interval)
    return Entry(value, interval=f"[{low}, {high}]")


def _notes(comparison: Comparison, standings: Standings, measure: str) -> list[str]:
    if not standings.entries:
        return ["No seed of a setting that all strategies have."]
    apart = f" ({standings.apart})" if standings.apart else ""
    notes = [
        f"In the order of the mean rank over {counted(standings.settings, 'setting')}{apart}, "
        f"within each by the mean over seeds of {measure}. {counted(standings.runs, 'run')} of "
        "each strategy.",
        "[95 % intervals] are over seeds, not over settings: what other seeds would change, by a "
        "bootstrap of the seeds within each setting, paired over strategies.",
        "Minus FedAvg: the mean difference from it over settings, paired by seed, with Student's t "
        "interval. Ahead: the share of seeds in which it is ahead of FedAvg, a tie half. "
        "Further columns are means over all runs.",
    ]
    if standings.no_ranking:
        notes.insert(0, standings.no_ranking)
    elif standings.p_value is not None:
        notes.insert(
            1,
            f"Friedman's test finds a difference (p = {standings.p_value:.2g}). Bold: Nemenyi's, "
            "over these settings at 5 %, does not tell it apart from the first.",
        )
    if standings.left_out:
        notes.append(
            f"{counted(standings.left_out, 'run')} left out, since not all strategies have "
            "their seed."
        )
    if any(result.diverged for result in comparison.results):
        notes.append(DIVERGED.capitalize())
    return notes
