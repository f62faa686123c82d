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
    standings, rows = comparison.standings, []
    assert standings
    for standing in standings.entries:
        row = {"strategy": standing.strategy, "strategies": len(standings.entries)}
        estimates = {
            "rank": standing.rank,
            "interquartile_mean": standing.score,
            "ahead_of_fedavg": standing.ahead,
            "minus_fedavg": standing.difference,
        }
        for name, estimate in estimates.items():
            low, high = (estimate and estimate.interval) or (math.nan, math.nan)
            value = estimate.value if estimate else math.nan
            row |= {name: value, f"{name}_low": low, f"{name}_high": high}
        row |= {"mean_rank": standing.mean_rank, "leads": int(standing.leads)}
        row |= {"settings": standings.settings, "runs": standings.runs}
        row |= {
            f"{result.metric} {result.at}": result.sample.mean
            for result in comparison.results
            if result.labels[STRATEGY] == standing.strategy
        }
        rows.append(row)
    return pd.DataFrame(rows)


def lay_out_leaderboard(comparison: Comparison, names: Names) -> Layout:
    """Lay out a leaderboard as a table, a row per strategy, the best first."""
    standings, measures = comparison.standings, comparison.by_measure()
    assert standings
    first = next(iter(measures))
    del measures[first]  # by which the strategies are ranked
    columns = ["Rank", "Mean rank", SHARE.label, *short_titles(measures)]
    layout = Layout([names.title(STRATEGY)], columns)
    for standing in standings.entries:
        own = {STRATEGY: standing.strategy}
        rank = f"{standing.rank.value:.0f}"
        rank = f"**{rank}**" if standing.leads else rank
        entries = [
            Entry() if standings.no_ranking else Entry(rank, interval=rank_interval(standing)),
            Entry(f"{standing.mean_rank:.1f}", labels=own),
            _ahead(standing.ahead),
        ]
        for results in measures.values():
            means = (result.sample.mean for result in results if result.labels == own)
            metric = METRICS[results[0].metric]
            entries.append(Entry(rounded(next(means, math.nan), metric), labels=own))
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


def _ahead(estimate: Estimate | None) -> Entry:
    if estimate is None:
        return Entry(NO_VALUE)
    low, high = estimate.interval or (math.nan, math.nan)
    interval = f"[{rounded(low, SHARE)}, {rounded(high, SHARE)}]" if estimate.interval else ""
    return Entry(rounded(estimate.value, SHARE), interval=interval)


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
        "Ahead: the share of seeds in which it is ahead of FedAvg, a tie half. Further columns are "
        "means over all runs.",
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
        left_out = counted(standings.left_out, "run")
        notes.append(f"{left_out} left out, since not all strategies have their seed.")
    if any(result.diverged for result in comparison.results):
        notes.append(DIVERGED.capitalize())
    return notes
