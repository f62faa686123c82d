"""Works out and lays out a leaderboard: strategies ranked across the settings of an experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.core.counts import counted
from cohort.core.lazy import lazy
from cohort.core.metric import Metric
from cohort.results.across import Estimate, ordered_scores, runs_by_setting
from cohort.results.comparison import Comparison, compare
from cohort.results.names import METRICS, Names
from cohort.results.ranks import Standing, Standings, rank_strategies
from cohort.results.series import NO_VALUE, read_metric
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
    left_out = board.without or []
    comparison = compare(board.measures(), spec, metrics_file)
    metrics = read_metric(metrics_file, board.metric)
    metrics = metrics[~metrics[STRATEGY].isin(left_out)]
    runs = runs_by_setting(metrics, board.metric, board.at, board.shown())
    scores = ordered_scores(runs, STRATEGY, Names.of(spec["look"]), METRICS[board.metric].better)
    standings = Standings(
        entries=rank_strategies(scores) if scores.settings else [],
        settings=len(scores.settings),
        apart=str(runs["apart"].iloc[0]) if len(runs) else "",
        runs=scores.values.shape[1],
        left_out=len(runs) - scores.values.size,
    )
    return replace(
        comparison,
        results=[each for each in comparison.results if each.labels[STRATEGY] not in left_out],
        standings=standings,
    )


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
    layout = Layout(
        [names.title(STRATEGY)],
        [
            *("Rank", f"{metric.label}, interquartile mean", SHARE.label, "Mean rank"),
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
            Entry(
                f"{standing.rank.value:.0f}",
                best=standing.leads,
                interval=rank_interval(standing),
                labels=own,
            ),
            replace(_estimated(standing.score, metric), labels=own),
            _estimated(standing.ahead, SHARE),
            Entry(f"{standing.mean_rank:.1f}"),
            *means,
        ]
        layout.lines.append(([names.value(STRATEGY, standing.strategy)], entries))
    layout.notes.extend(_notes(comparison, standings, first))
    return layout.condensed()


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
        f"Rank: by the mean rank over {counted(standings.settings, 'setting')}{apart}, within each "
        f"by the mean over seeds of {measure}. {counted(standings.runs, 'run')} of each strategy.",
        "[95 % intervals]: what other seeds would change, by a bootstrap of the seeds within each "
        "setting, paired over strategies.",
        "Ahead: the share of seeds in which it is ahead of FedAvg, a tie half; "
        "further columns are means over all runs.",
    ]
    if any(standing.leads for standing in standings.entries):
        notes.insert(2, "Bold: Nemenyi's test at 5 % does not tell it apart from the first.")
    if standings.left_out:
        notes.append(
            f"{counted(standings.left_out, 'run')} left out, since not all strategies have "
            "their seed."
        )
    if any(result.diverged for result in comparison.results):
        notes.append(DIVERGED.capitalize())
    return notes
