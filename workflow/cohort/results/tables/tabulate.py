"""Compares the runs of a table and writes it as JSON, CSV, Markdown and LaTeX: means as papers
print them, or a leaderboard of strategies ranked across the settings of an experiment."""

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
from cohort.results.across import Standing
from cohort.results.comparison import Comparison, Result, compare
from cohort.results.files import restored_notes
from cohort.results.intervals import Verdict
from cohort.results.names import METRICS, Names, listed
from cohort.results.paper import doubts
from cohort.results.series import FULL, GENERATED, NO_VALUE, read_metric, runs_without
from cohort.results.tables import layout as layouts
from cohort.results.tables.layout import DAGGER, DOUBLE_DAGGER, SLASH, Entry, Layout, rounded
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
    """Write the table of `spec` to each output, in the format of its suffix: .md, .tex, .json for
    the whole comparison, or .csv for its unrounded numbers."""
    comparison = compare_table(spec, metrics_file)
    table = lay_out_table(spec, comparison)
    table.notes.extend(restored_notes([metrics_file]))
    title, caption = spec.get("title", ""), spec.get("caption", "")
    csv: dict[str, Any] = {"index": False, "lineterminator": "\n", "float_format": "%.10g"}
    formats = {
        ".json": lambda: to_sealed_json(comparison.as_json()),
        ".csv": lambda: numbers_of(comparison).to_csv(**csv),
        ".md": lambda: layouts.markdown(table, title, caption),
        ".tex": lambda: layouts.latex(table, title, caption),
    }
    for output in outputs:
        write_text(output, formats[Path(output).suffix]())


def compare_table(spec: Mapping[str, Any], metrics_file: str | Path) -> Comparison:
    """Compare the runs that a table shows; of a leaderboard also their standings."""
    if spec.get("kind") != Leaderboard.name:
        return compare(Table.from_spec(spec).measures(), spec, metrics_file)
    board = Leaderboard.from_spec(spec)
    metrics = runs_without(read_metric(metrics_file, board.metric), board.named())
    runs = across.runs_by_setting(metrics, board.metric, board.at, board.shown())
    names, better = Names.of(spec["look"]), METRICS[board.metric].better
    standings = across.standings_of(across.ordered_scores(runs, STRATEGY, names, better), runs)
    return replace(compare(board.measures(), spec, metrics_file), standings=standings)


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
        return Layout([], [], notes=[NOTHING])
    entries = list(map(_entry, results))
    table = _table(comparison, entries, names, joined=joined).condensed()
    measures = comparison.by_measure()
    measured = f"{(SLASH if joined else '; ').join(measures)}: "
    measured = "" if set(table.columns) <= set(measures) else measured
    interval = "" if joined else "[95 % interval of the mean] "
    seeds = sorted(set().union(*(result.values for result in results)))
    note = f"{measured}mean ± standard deviation over seeds {interval}(number of runs)."
    if seeds and all(len(result.values) < 2 for result in results):
        note = f"{measured}of seed{'s' if len(seeds) > 1 else ''} {listed(seeds)}."
    notes = {
        note[0].upper() + note[1:]: True,
        BOLD: any(result.best for result in results),
        f"{DAGGER}: {layouts.DIVERGED}": any(DAGGER in entry.value for entry in entries),
        **dict.fromkeys(_paper_notes(comparison), comparison.has_paper),
        DASH: any(NO_VALUE in entry.value for _, line in table.lines for entry in line),
        GENERATED.capitalize() + ".": comparison.generated,
    }
    table.notes.extend(note for note, is_needed in notes.items() if is_needed)
    return table


def _table(
    comparison: Comparison, entries: Sequence[Entry], names: Names, *, joined: bool
) -> Layout:
    """The values of the last label across; the measures are another label if there are several."""
    results, measures = comparison.results, comparison.by_measure()
    labels = [*results[0].labels, *([MEASURE] if len(measures) > 1 else [])]
    keys = [(*result.labels.values(), result.measure)[: len(labels)] for result in results]
    values = {
        label: names.ordered(label, column)
        for label, column in zip(labels, zip(*keys, strict=True), strict=True)
    }
    values |= {MEASURE: list(measures)}
    cells, notes = dict(zip(keys, entries, strict=True)), []
    if joined and len(labels) > 1:
        *labels, last = labels
        cells = {row: layouts.slashed(line) for row, line in _lines(cells, values[last]).items()}
        if last != MEASURE:
            words = SLASH.join(names.value(last, value) for value in values[last])
            notes.append(f"{names.title(last)}: {words}.")
    *heads, top = labels
    titles = [names.value(top, value) for value in values[top]]
    if top == MEASURE:
        titles = layouts.short_titles(measures)
    lines = [
        (list(map(names.value, heads, row)), line)
        for row, line in _lines(cells, values[top]).items()
    ]
    return Layout([*map(names.title, heads)], titles, lines, notes)


def _lines(
    cells: Mapping[tuple[str, ...], Entry], columns: Sequence[str]
) -> dict[tuple[str, ...], list[Entry]]:
    """The cells of each row, which is all of a key but its last value, by their columns."""
    rows: dict[tuple[str, ...], list[Entry]] = {}
    for row in dict.fromkeys(key[:-1] for key in cells):
        rows[row] = [cells.get((*row, column), Entry(NO_VALUE)) for column in columns]
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
        value = NO_VALUE if result.finished == planned else layouts.NO_RESULT_YET
    value = f"**{value}**{mark}" if result.best else f"{value}{mark}"
    if n > 1:
        low, high = (rounded(end, metric) for end in result.interval)
        value += f" ± {rounded(result.sample.sd, metric).lstrip('+')}"
        interval = f"[{low}, {high}]"
    count = f"{n}" if n == planned else f"n = {n} of {planned}"
    verdict = result.verdict if result.verdict in get_args(Verdict) else ""
    return Entry(value, count, "", interval, paper, verdict, result.labels)


def _paper(result: Result, metric: Metric) -> str:
    """The paper's value with its deviation, and the difference of our mean from it."""
    assert result.paper
    sd, mark = result.paper.sd, DOUBLE_DAGGER if result.paper.doubtful else ""
    spread = "" if sd is None else f" ± {rounded(sd, metric).lstrip('+')}"
    difference = round(result.difference * metric.scale, metric.digits) + 0.0  # -0.0 is a plain 0
    apart = f" ({difference:+.{metric.digits}f})" if result.values else ""
    return f"{rounded(result.paper.value, metric)}{mark}{spread}{apart}"


def _paper_notes(comparison: Comparison) -> list[str]:
    papers = [result.paper for result in comparison.results if result.paper]
    sources = dict.fromkeys(f"{paper.item} ({paper.source})" for paper in papers)
    reasons, scale = doubts(paper.doubtful for paper in papers), comparison.scale
    notes = {
        f"Paper: {', '.join(sources)}.": bool(sources),
        "In parentheses after the paper's value: measured minus paper.": True,
        AGREEMENT: any(result.margin is not None for result in comparison.results),
        f"No verdict: scale {scale} is a cheaper version of the paper's runs.": scale != FULL,
        f"{DOUBLE_DAGGER} doubtful: {reasons}.": bool(reasons),
    }
    return [note for note, is_needed in notes.items() if is_needed]


def lay_out_leaderboard(comparison: Comparison, names: Names) -> Layout:
    """Lay out a leaderboard as a table, a row per strategy, the best first."""
    standings, measures = comparison.standings, comparison.by_measure()
    assert standings
    del measures[next(iter(measures))]  # by which the strategies are ranked
    titles = layouts.short_titles(measures)
    table = Layout([names.title(STRATEGY)], ["Rank", "Mean rank", SHARE.label, *titles])
    for standing in standings.entries:
        own = {STRATEGY: standing.strategy}
        rank = f"**{standing.rank.value:.0f}**" if standing.leads else f"{standing.rank.value:.0f}"
        ahead, limits = standing.ahead, standing.ahead and standing.ahead.interval
        interval = f"[{', '.join(rounded(end, SHARE) for end in limits)}]" if limits else ""
        entries = [
            Entry() if standings.no_ranking else Entry(rank, interval=rank_interval(standing)),
            Entry(f"{standing.mean_rank:.1f}", labels=own),
            Entry(rounded(ahead.value, SHARE) if ahead else NO_VALUE, interval=interval),
        ]
        for results in measures.values():
            means = (result.sample.mean for result in results if result.labels == own)
            metric = METRICS[results[0].metric]
            entries.append(Entry(rounded(next(means, math.nan), metric), labels=own))
        table.lines.append(([names.value(STRATEGY, standing.strategy)], entries))
    table.notes.extend(_notes(comparison))
    return table.condensed()


def rank_interval(standing: Standing) -> str:
    """The interval of a rank in whole ranks as text, `[1, 6]`; empty if there is none."""
    if standing.rank.interval is None:
        return ""
    low, high = standing.rank.interval
    return f"[{math.floor(low)}, {math.ceil(high)}]"


def rank_text(standing: Standing) -> str:
    """A rank with its interval as text: `3 [1, 6]`."""
    return f"{standing.rank.value:.0f} {rank_interval(standing)}".rstrip()


def _notes(comparison: Comparison) -> list[str]:
    standings, measure = comparison.standings, next(iter(comparison.by_measure()), "")
    if not standings or not standings.entries:
        return ["No seed of a setting that all strategies have."]
    apart = f" ({standings.apart})" if standings.apart else ""
    left_out, is_tested = counted(standings.left_out, "run"), standings.p_value is not None
    notes = {
        standings.no_ranking: bool(standings.no_ranking),
        f"In the order of the mean rank over {counted(standings.settings, 'setting')}{apart}, "
        f"within each by the mean over seeds of {measure}. {counted(standings.runs, 'run')} of "
        "each strategy.": True,
        f"Friedman's test finds a difference (p = {standings.p_value or 0:.2g}). Bold: Nemenyi's, "
        "over these settings at 5 %, does not tell it apart from the first.": is_tested
        and not standings.no_ranking,
        "[95 % intervals] are over seeds, not over settings: what other seeds would change, by a "
        "bootstrap of the seeds within each setting, paired over strategies.": True,
        "Ahead: the share of seeds in which it is ahead of FedAvg, a tie half. Further columns are "
        "means over all runs.": True,
        f"{left_out} left out, since not all strategies have their seed.": standings.left_out > 0,
        layouts.DIVERGED.capitalize(): any(result.diverged for result in comparison.results),
    }
    return [note for note, is_needed in notes.items() if is_needed]
