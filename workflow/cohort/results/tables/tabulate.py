"""Compares the runs of a table and writes it as JSON, CSV, Markdown and LaTeX: means as papers
print them, or a leaderboard of strategies ranked across the settings of an experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

import pandas as pd

from cohort.core.files import write_text
from cohort.core.metric import Metric
from cohort.core.sealed_json import to_sealed_json
from cohort.core.text import counted
from cohort.results import across
from cohort.results.across import Estimate, Standing, Standings
from cohort.results.comparison import Comparison, Result, compare
from cohort.results.files import restored_notes
from cohort.results.intervals import Verdict
from cohort.results.names import METRICS, Names, listed
from cohort.results.paper import doubts
from cohort.results.series import FULL, GENERATED, NO_VALUE, read_metric, runs_without
from cohort.results.tables.layout import (
    DAGGER,
    DIVERGED,
    DOUBLE_DAGGER,
    NO_RESULT_YET,
    SLASH,
    Entry,
    Layout,
    latex,
    markdown,
    rounded,
    short_titles,
    slashed,
)
from cohort.results.tables.spec import STRATEGY, Leaderboard, Table

AGREEMENT = (
    "Agrees: the 90 % interval of the difference lies within 2 points, near 0 and 100 % within "
    "half of the distance to them; differs: its 95 % interval lies outside."
)
BOLD = (
    "Bold: of at least five seeds, the best mean and all that cannot be separated from it "
    "(t-tests at 5 % with Holm's correction, paired by seed)."
)
DASH = f"{NO_VALUE}: not planned, or no value in these runs."
MEASURE = "Measure"  # the head of a column of them
NOTHING = "Nothing of it is planned at this scale."
SHARE = Metric("Ahead of FedAvg", "%", 100, digits=0)


def tabulate(
    spec: Mapping[str, Any], metrics_file: str | Path, outputs: Sequence[str | Path]
) -> None:
    """Write the table of `spec` to each output; its suffix (.json, .csv, .md, .tex) sets the
    format.

    JSON holds the whole comparison, CSV its unrounded numbers.
    """
    comparison = compare_table(spec, metrics_file)
    layout = lay_out_table(spec, comparison)
    layout.notes.extend(restored_notes([metrics_file]))
    title, caption = spec.get("title", ""), spec.get("caption", "")
    formats = {
        ".json": lambda: to_sealed_json(comparison.as_json()),
        ".csv": lambda: numbers_of(comparison).to_csv(
            index=False, lineterminator="\n", float_format="%.10g"
        ),
        ".md": lambda: markdown(layout, title, caption),
        ".tex": lambda: latex(layout, title, caption),
    }
    for output in outputs:
        write_text(output, formats[Path(output).suffix]())


def compare_table(spec: Mapping[str, Any], metrics_file: str | Path) -> Comparison:
    """Compare the runs that a table shows."""
    if spec.get("kind") == Leaderboard.name:
        return compare_across(spec, metrics_file)
    return compare(Table.from_spec(spec).measures(), spec, metrics_file)


def lay_out_table(spec: Mapping[str, Any], comparison: Comparison) -> Layout:
    """The comparison of a table, rounded and titled for readers."""
    names = Names.of(spec["look"])
    if comparison.standings:
        return lay_out_leaderboard(comparison, names)
    return lay_out(comparison, names, joined=spec.get("joined", False))


def numbers_of(comparison: Comparison) -> pd.DataFrame:
    """A comparison as a table of unrounded numbers in the metrics' stored units: a row for each
    result, or for each strategy of a leaderboard its standing."""
    if comparison.standings:
        standings = [asdict(entry) for entry in comparison.standings.entries]
        return pd.json_normalize(standings).dropna(axis="columns", how="all")
    rows = []
    for result in comparison.results:
        sample, paper = result.sample, result.paper
        low, high = result.interval if sample.n > 1 else (None, None)
        row: dict[str, Any] = {**result.labels, "metric": result.metric, "at": result.at}
        row |= {"mean": sample.mean, "sd": sample.sd, "low": low, "high": high, "n": sample.n}
        row |= {"planned": result.planned, "finished": result.finished}
        row |= {"diverged": result.diverged, "best": int(result.best)}
        if comparison.has_paper:
            low, high = result.difference_interval or (None, None)
            row |= {"paper": paper and paper.value, "paper_sd": paper and paper.sd}
            row |= {"difference": result.difference, "difference_low": low, "difference_high": high}
            row |= {"margin": result.margin, "verdict": result.verdict}
            row |= {key: getattr(paper, key, "") for key in ("item", "source", "doubtful")}
        rows.append(row)
    return pd.DataFrame(rows, columns=None if rows else comparison.labels)


def lay_out(comparison: Comparison, names: Names, *, joined: bool = False) -> Layout:
    """Lay out the results of a table in their order.

    `joined` puts the measures, or else the values of the last label, into one cell, separated by
    slashes, and those of the label before in columns.
    """
    results = comparison.results
    if not results:
        return Layout([], [], notes=comparison.description or [NOTHING])
    entries = list(map(_entry, results))
    layout = _table(comparison, entries, names, joined=joined).condensed()
    measures = comparison.by_measure()
    measured = f"{(SLASH if joined else '; ').join(measures)}: "
    measured = "" if set(layout.columns) <= set(measures) else measured
    interval = "" if joined else "[95 % interval of the mean] "
    seeds = sorted(set().union(*(result.values for result in results)))
    note = f"{measured}mean ± standard deviation over seeds {interval}(number of runs)."
    if seeds and all(len(result.values) < 2 for result in results):
        note = f"{measured}of seed{'s' if len(seeds) > 1 else ''} {listed(seeds)}."
    notes = {
        note[0].upper() + note[1:]: True,
        " ".join(comparison.description): bool(comparison.description),
        BOLD: any(result.best for result in results),
        f"{DAGGER}: {DIVERGED}": any(DAGGER in entry.value for entry in entries),
        **dict.fromkeys(_paper_notes(comparison), comparison.has_paper),
        DASH: any(NO_VALUE in entry.value for _, line in layout.lines for entry in line),
        GENERATED.capitalize() + ".": comparison.generated,
    }
    layout.notes.extend(note for note, is_needed in notes.items() if is_needed)
    return layout


def _table(
    comparison: Comparison, entries: Sequence[Entry], names: Names, *, joined: bool
) -> Layout:
    """The values of the last label across; the measures are another label if there are several."""
    results, measures = comparison.results, comparison.by_measure()
    labels = [*results[0].labels, *([MEASURE] if len(measures) > 1 else [])]
    cells = {
        tuple([*result.labels.values(), result.measure][: len(labels)]): entry
        for result, entry in zip(results, entries, strict=True)
    }

    def ordered(label: str) -> list[str]:
        if label == MEASURE:
            return list(measures)
        return names.ordered(label, (result.labels[label] for result in results))

    notes = []
    if joined and len(labels) > 1:
        *labels, last = labels
        parts = ordered(last)
        cells = {row: slashed(line) for row, line in _lines(cells, parts).items()}
        words = SLASH.join(names.value(last, part) for part in parts)
        notes += [] if last == MEASURE else [f"{names.title(last)}: {words}."]
    *heads, across = labels
    columns = ordered(across)
    lines = [
        (list(map(names.value, heads, row)), line) for row, line in _lines(cells, columns).items()
    ]
    titles = [names.value(across, column) for column in columns]
    titles = short_titles(measures) if across == MEASURE else titles
    return Layout([*map(names.title, heads)], titles, lines, notes)


def _lines(
    cells: Mapping[tuple[str, ...], Entry], columns: Sequence[str]
) -> dict[tuple[str, ...], list[Entry]]:
    """The cells of each row, which is all of a key but its last value, by their columns."""
    rows: dict[tuple[str, ...], list[Entry]] = {}
    for *row, _ in cells:
        line = (cells.get((*row, column), Entry(NO_VALUE)) for column in columns)
        rows.setdefault(tuple(row), list(line))
    return rows


def _entry(result: Result) -> Entry:
    """Our value of a result beside the paper's."""
    n, planned, metric = len(result.values), result.planned, METRICS[result.metric]
    paper = _paper(result, metric) if result.paper else ""
    if n > 1:  # the mean of whole numbers is none
        metric = replace(metric, digits=max(1, metric.digits))
    value, interval, mark = rounded(result.sample.mean, metric), "", DAGGER * bool(result.diverged)
    if not n and result.diverged == planned:
        value, mark = "diverged", ""
    elif not n:
        value = NO_VALUE if result.finished == planned else NO_RESULT_YET
    value = f"**{value}**{mark}" if result.best else f"{value}{mark}"
    if n > 1:
        low, high = (rounded(end, metric) for end in result.interval)
        value += f" ± {rounded(result.sample.sd, metric).lstrip('+')}"
        interval = f"[{low}, {high}]"
    return Entry(
        value,
        f"{n}" if n == planned else f"n = {n} of {planned}",
        interval=interval,
        paper=paper,
        verdict=result.verdict if result.verdict in get_args(Verdict) else "",
        labels=result.labels,
    )


def _paper(result: Result, metric: Metric) -> str:
    """The paper's value with its deviation, and the difference of our mean from it."""
    assert result.paper
    sd, mark = result.paper.sd, DOUBLE_DAGGER if result.paper.doubtful else ""
    spread = "" if sd is None else f" ± {rounded(sd, metric).lstrip('+')}"
    difference = round(result.difference * metric.scale, metric.digits) + 0.0  # -0.0 is a plain 0
    apart = f" ({difference:+.{metric.digits}f})" if result.values else ""
    return f"{rounded(result.paper.value, metric)}{mark}{spread}{apart}"


def _paper_notes(comparison: Comparison) -> list[str]:
    results = comparison.results
    papers = [result.paper for result in results if result.paper]
    sources = dict.fromkeys(f"{paper.item} ({paper.source})" for paper in papers)
    notes = [f"Paper: {', '.join(sources)}."] if sources else []
    notes.append("In parentheses after the paper's value: measured minus paper.")
    if any(result.margin is not None for result in results):
        notes.append(AGREEMENT)
    if comparison.scale != FULL:
        notes.append(
            f"No verdict: scale {comparison.scale} is a cheaper version of the paper's runs."
        )
    reasons = doubts(paper.doubtful for paper in papers)
    return notes + ([f"{DOUBLE_DAGGER} doubtful: {reasons}."] if reasons else [])


def compare_across(spec: Mapping[str, Any], metrics_file: str | Path) -> Comparison:
    """Compare a leaderboard's runs: each strategy's means over all settings, and standings."""
    board = Leaderboard.from_spec(spec)
    comparison = compare(board.measures(), spec, metrics_file)
    metrics = runs_without(read_metric(metrics_file, board.metric), board.named())
    runs = across.runs_by_setting(metrics, board.metric, board.at, board.shown())
    names, better = Names.of(spec["look"]), METRICS[board.metric].better
    scores = across.ordered_scores(runs, STRATEGY, names, better)
    return replace(comparison, standings=across.standings_of(scores, runs))


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
