"""Compares the runs of a table and writes it as JSON, CSV, Markdown and LaTeX, rounded and titled
for readers: means as papers print them, or a leaderboard of strategies ranked across settings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from cohort.core import counted, files, lazy, sealed_json
from cohort.core.metric import Metric
from cohort.results import series, statistics
from cohort.results.comparison import STRATEGY, Comparison, Leaderboard, Result, Table, compare
from cohort.results.names import METRICS, Names, listed
from cohort.results.paper import doubts
from cohort.results.series import FULL, NO_VALUE

if TYPE_CHECKING:
    from pandas import DataFrame

pd = lazy("pandas")
DAGGER, DOUBLE_DAGGER = "†", "‡"
DIVERGED = (
    "a run diverged; it counts with the worst value: the lowest accuracy, chance level at "
    "most, the largest loss, never for a target; otherwise with its rounds until then."
)
NO_RESULT_YET = "no result yet"
SLASH = " / "
WIDE = 5  # columns
MINUS = re.compile(r"(?<![\w-])-(?=\d|\$\\infty)")
BOLD_TEXT = re.compile(r"\*\*(.+?)\*\*")
MARKDOWN = str.maketrans({"|": "\\|", "\n": " "})  # what would end a cell of a table
LATEX = {ord(letter): f"\\{letter}" for letter in "{}&%$#_"} | str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$", "✗": r"$\times$"}
    | {NO_VALUE: "--", DAGGER: r"$^\dagger$", DOUBLE_DAGGER: r"$^\ddagger$", "∞": r"$\infty$"}
)
AGREEMENT = (
    "Agrees: the 90 % interval of the difference lies within 2 points, near 0 and 100 % within "
    "half of the distance to them; differs: its 95 % interval lies outside."
)
BOLD = (
    "Bold: of at least five seeds, the best mean and all that cannot be separated from it, where "
    "any can (t-tests at 5 % with Holm's correction, paired by seed)."
)
DASH = f"{NO_VALUE}: not planned, or no value in these runs."
MEASURE = "Measure"  # the head of a column of them
NOTHING = "Nothing of it is planned at this scale."
SHARE = Metric("Ahead of FedAvg", "%", 100, digits=0)


@dataclass(frozen=True)
class Entry:
    """A cell as text: our `value`, between ** if it is the best, with the number of its runs and
    its `interval`, then the paper's value and the `verdict`; several of each are separated by
    slashes. `labels` say of which runs it is."""

    value: str = ""
    count: str = ""
    interval: str = ""
    paper: str = ""
    verdict: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_runs(self) -> bool:
        """Whether there is a result of our runs."""
        values = {value.rstrip(DAGGER) for value in self.value.split(SLASH)}
        return bool(values - {"", NO_VALUE, NO_RESULT_YET})

    @property
    def is_empty(self) -> bool:
        """Whether there is no number."""
        return not (self.has_runs or self.paper)

    @property
    def lines(self) -> list[str]:
        """What a reader sees in the cell, line by line."""
        count = f" ({self.count})" if self.count else ""
        ours = [f"{self.value}{count}", self.interval]
        paper = f"paper {self.paper}" if self.paper else ""
        lines = [*(ours if self.has_runs or not paper else []), paper, self.verdict]
        return [line for line in lines if line]


def slashed(entries: Sequence[Entry]) -> Entry:
    """Several results in one cell."""
    counts = [entry.count for entry in entries if entry.has_runs] or [entries[0].count]
    return Entry(
        SLASH.join(entry.value for entry in entries),
        counts[0] if len(set(counts)) == 1 else SLASH.join(counts),
        paper=_joined([entry.paper for entry in entries]),
        verdict=_joined([entry.verdict for entry in entries]),
        labels=entries[0].labels,
    )


def _joined(texts: Sequence[str]) -> str:
    """The texts separated by slashes, a dash for an empty one; empty if all are."""
    return SLASH.join(text or NO_VALUE for text in texts) if any(texts) else ""


@dataclass(frozen=True)
class Layout:
    """A table whose rows have a text for each of `heads` and an entry for each of `columns`.
    `constants` are the same in all rows; the cells of `prose` may need several lines."""

    heads: list[str]
    columns: list[str]
    rows: list[tuple[list[str], list[Entry]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    prose: bool = False

    @property
    def everywhere(self) -> str:
        """The sentence on the constants."""
        return f"Everywhere: {', '.join(self.constants)}." if self.constants else ""

    def condensed(self) -> Layout:
        """Drop rows and columns without a number; turn what all rows share into constants."""
        is_empty = attrgetter("is_empty")
        rows = [row for row in self.rows if not all(map(is_empty, row[1]))]
        words, entries = zip(*rows, strict=True) if rows else ((), ())
        has_number = [not all(map(is_empty, column)) for column in zip(*entries, strict=True)]
        varies = [len(set(column)) > 1 for column in zip(*words, strict=True)]
        varies = varies if any(varies) else [index == 0 for index in range(len(varies))]
        counts = {entry.count for row in entries for entry in row if not entry.is_empty}
        count = counts.pop() if len(counts) == 1 and min(counts).isdigit() else ""
        condensed = []
        for row_words, row_entries in rows:
            cells = compress(row_entries, has_number)
            filled = [replace(cell, count="") if cell.count == count else cell for cell in cells]
            condensed.append((list(compress(row_words, varies)), filled))
        leading = zip(self.heads, rows[0][0] if rows else self.heads, varies, strict=False)
        fixed = (f"{head} {word}" for head, word, varied in leading if not varied)
        constants = [*self.constants, *fixed]
        constants += [counted(int(count), "run")] if count else []
        left_out = len(self.rows) - len(rows)
        notes = [f"Rows without any number are left out ({left_out})."] if left_out else []
        heads, columns = compress(self.heads, varies), compress(self.columns, has_number)
        return Layout([*heads], [*columns], condensed, [*notes, *self.notes], constants)


def rounded(value: float, metric: Metric) -> str:
    """A value of a metric as text, in its unit and with its digits."""
    shown, sign = value * metric.scale, "+" if metric.signed else ""
    digits = 0 if abs(shown) >= 10_000 else metric.digits
    return NO_VALUE if math.isnan(value) else f"{shown:{sign},.{digits}f}"


def short_titles(measures: Mapping[str, list[Result]]) -> list[str]:
    """The titles of measures, without the rounds they are from if that still tells them apart."""
    short = [METRICS[results[0].metric].label for results in measures.values()]
    return short if len(set(short)) == len(short) else list(measures)


def markdown(layout: Layout, title: str, caption: str) -> str:
    """Render a GitHub-flavored Markdown table under its title."""
    rules = ["---"] * len(layout.heads) + ["---" if layout.prose else "---:"] * len(layout.columns)
    lines = [[*layout.heads, *layout.columns], rules]
    for words, entries in layout.rows:
        lines.append([*words, *("<br>".join(entry.lines) for entry in entries)])
    escape = methodcaller("translate", MARKDOWN)
    rows = "\n".join(f"| {' | '.join(map(escape, line))} |" for line in lines)
    parts = [
        f"**{title}**" if title else "",
        " ".join(filter(None, (caption, layout.everywhere))),
        rows if layout.rows else "",
        " ".join(layout.notes),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def latex(layout: Layout, title: str, caption: str) -> str:
    """Render a LaTeX table, which needs the package booktabs; a wide one spans both columns of a
    page, and one of prose, which needs longtable, several pages."""
    rows = []
    for words, entries in layout.rows:
        # {} lest a following [ be read as the space below a line
        cells = [r" \\{} ".join(map(escape_latex, entry.lines)) for entry in entries]
        cells = [rf"\shortstack[r]{{{cell}}}" if r" \\{} " in cell else cell for cell in cells]
        rows.append([*map(escape_latex, words), *cells])
    texts = filter(None, (title, caption, layout.everywhere))
    sentences = [f"{text.removesuffix('.')}." for text in texts]
    names = list(map(escape_latex, [*layout.heads, *layout.columns]))
    aligned = "l" * len(layout.heads) + "r" * len(layout.columns) or "l"
    if layout.prose:
        aligned = rf"p{{{0.9 / len(names):.2f}\linewidth}}" * len(names)
    text = pd.DataFrame(rows, columns=names).to_latex(
        index=False,
        escape=False,
        column_format=aligned,
        caption=escape_latex(" ".join(sentences)),
        longtable=layout.prose,
    )
    text = text.replace("{table}", "{table*}") if len(layout.columns) >= WIDE else text
    return f"{text}\n{escape_latex(' '.join(layout.notes))}\n"


def escape_latex(text: str) -> str:
    """Escape LaTeX's special characters; a minus is not a hyphen, and bold stays bold."""
    return BOLD_TEXT.sub(r"\\textbf{\1}", MINUS.sub("$-$", text.translate(LATEX)))


def tabulate(
    spec: Mapping[str, Any], metrics_file: str | Path, outputs: Sequence[str | Path]
) -> None:
    """Write the table of `spec` to each output by its suffix: .md, .tex, .json for the whole
    comparison, or .csv for its unrounded numbers."""
    comparison = compare_table(spec, metrics_file)
    table = lay_out_table(spec, comparison)
    table.notes.extend(series.restored_notes([metrics_file]))
    title, caption = spec.get("title", ""), spec.get("caption", "")
    csv: dict[str, Any] = {"index": False, "lineterminator": "\n", "float_format": "%.10g"}
    formats = {
        ".json": lambda: sealed_json.to_sealed_json(asdict(comparison)),
        ".csv": lambda: numbers_of(comparison).to_csv(**csv),
        ".md": lambda: markdown(table, title, caption),
        ".tex": lambda: latex(table, title, caption),
    }
    for output in outputs:
        files.write_text(output, formats[Path(output).suffix]())


def compare_table(spec: Mapping[str, Any], metrics_file: str | Path) -> Comparison:
    """Compare the runs that a table shows; of a leaderboard also their standings."""
    if spec.get("kind") != Leaderboard.name:
        return compare(Table.from_spec(spec).measures(), spec, metrics_file)
    board = Leaderboard.from_spec(spec)
    metrics = series.read_metric(metrics_file, board.metric)
    metrics = series.runs_without(metrics, board.mentioned_values())
    runs = statistics.runs_by_setting(metrics, board.metric, board.at, board.labels())
    order = Names.of(spec["style"]).ordered(STRATEGY, runs[STRATEGY])
    ranked = runs.sort_values(STRATEGY, key=lambda column: column.map(order.index), kind="stable")
    scores = statistics.Scores.of(ranked, METRICS[board.metric].better)
    standings = statistics.standings_of(scores, runs)
    return replace(compare(board.measures(), spec, metrics_file), standings=standings)


def lay_out_table(spec: Mapping[str, Any], comparison: Comparison) -> Layout:
    """The comparison of a table, rounded and titled for readers."""
    names = Names.of(spec["style"])
    if comparison.standings:
        return lay_out_leaderboard(comparison, names)
    return lay_out(comparison, names, joined=spec.get("joined", False))


def numbers_of(comparison: Comparison) -> DataFrame:
    """A comparison as a table of unrounded numbers in the metrics' stored units: a row for each
    result, or for each strategy of a leaderboard its standing."""
    if comparison.standings:
        standings = [asdict(entry) for entry in comparison.standings.entries]
        table = pd.json_normalize(standings).dropna(axis="columns", how="all")
        for name in [name for name in table if name.endswith(".interval")]:
            for part, end in enumerate(("low", "high")):
                table[name.replace("interval", end)] = table[name].str[part]
            del table[name]
        return table
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
    """Lay out the results of a table in their order. `joined` puts the measures, or else the values
    of the last label, into one cell between slashes, and those of the label before in columns."""
    results = comparison.results
    if not results:
        return Layout([], [], notes=[NOTHING])
    entries = list(map(_entry, results))
    table = _table(comparison, entries, names, joined=joined).condensed()
    measures = comparison.by_measure()
    measured = f"{(SLASH if joined else '; ').join(measures)}: "
    measured = "" if set(table.columns) <= set(measures) else measured
    interval = "" if joined else "[95 % interval of the mean] "
    papers = [result.paper for result in results if result.paper]
    sources = dict.fromkeys(f"{paper.title} ({paper.source})" for paper in papers)
    reasons, scale = doubts(paper.doubtful for paper in papers), comparison.scale
    is_cheaper = comparison.has_paper and scale != FULL
    seeds = sorted(set().union(*(result.values for result in results)))
    note = f"{measured}mean ± standard deviation over seeds {interval}(number of runs)."
    if any(seeds) and all(len(result.values) < 2 for result in results):  # else they are rows
        note = f"{measured}of seed{'s' if len(seeds) > 1 else ''} {listed(seeds)}."
    notes = {
        note[0].upper() + note[1:]: True,
        BOLD: any(result.best for result in results),
        f"{DAGGER}: {DIVERGED}": any(DAGGER in entry.value for entry in entries),
        f"Paper: {', '.join(sources)}.": bool(sources),
        "In parentheses after the paper's value: measured minus paper.": comparison.has_paper,
        AGREEMENT: any(result.margin is not None for result in results),
        f"No verdict: scale {scale} is a cheaper version of the paper's runs.": is_cheaper,
        f"{DOUBLE_DAGGER} doubtful: {reasons}.": bool(reasons),
        DASH: any(NO_VALUE in entry.value for _, row in table.rows for entry in row),
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
        cells = {key: slashed(row) for key, row in _rows(cells, values[last]).items()}
        if last != MEASURE:
            words = SLASH.join(names.value(last, value) for value in values[last])
            notes.append(f"{names.title(last)}: {words}.")
    *heads, top = labels
    titles = [names.phrase(top, value) for value in values[top]]
    if top == MEASURE:
        titles = short_titles(measures)
    by_key = _rows(cells, values[top])
    rows = [(list(map(names.value, heads, key)), row) for key, row in by_key.items()]
    return Layout([*map(names.title, heads)], titles, rows, notes)


def _rows(
    cells: Mapping[tuple[str, ...], Entry], columns: Sequence[str]
) -> dict[tuple[str, ...], list[Entry]]:
    """The cells of each row, which is all of a key but its last value, by their columns."""
    rows: dict[tuple[str, ...], list[Entry]] = {}
    for key in dict.fromkeys(key[:-1] for key in cells):
        rows[key] = [cells.get((*key, column), Entry(NO_VALUE)) for column in columns]
    return rows


def _entry(result: Result) -> Entry:
    """Our value of a result beside the paper's."""
    n, planned, metric = len(result.values), result.planned, METRICS[result.metric]
    paper = ""
    if result.paper:  # its value with its deviation, and the difference of our mean from it
        sd, doubt = result.paper.sd, DOUBLE_DAGGER if result.paper.doubtful else ""
        spread = "" if sd is None else f" ± {rounded(sd, metric).lstrip('+')}"
        difference = round(result.difference * metric.scale, metric.digits) + 0.0  # no -0.0
        apart = f" ({difference:+.{metric.digits}f})" if result.values else ""
        paper = f"{rounded(result.paper.value, metric)}{doubt}{spread}{apart}"
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
    count = f"{n}" if n == planned else f"n = {n} of {planned}"
    verdict = result.verdict if result.verdict in get_args(statistics.Verdict) else ""
    return Entry(value, count, interval, paper, verdict, result.labels)


def lay_out_leaderboard(comparison: Comparison, names: Names) -> Layout:
    """Lay out a leaderboard as a table, a row per strategy, the best first."""
    standings, measures = comparison.standings, comparison.by_measure()
    assert standings
    ranked_by = METRICS[measures.pop(next(iter(measures)))[0].metric]
    against = replace(ranked_by, title="minus FedAvg", signed=True)
    columns = ["Rank", "Mean rank", ranked_by.label, against.title, SHARE.label]
    table = Layout([names.title(STRATEGY)], [*columns, *short_titles(measures)])
    for standing in standings.entries:
        labels = {STRATEGY: standing.strategy}
        rank = f"**{standing.rank.value:.0f}**" if standing.leads else f"{standing.rank.value:.0f}"
        entries = [
            Entry() if standings.no_ranking else Entry(rank, interval=rank_interval(standing)),
            Entry(f"{standing.mean_rank:.1f}", labels=labels),
            Entry(rounded(standing.score, ranked_by)),
            _estimate_entry(standing.difference, against),
            Entry(rounded(standing.ahead.value, SHARE) if standing.ahead else NO_VALUE),
        ]
        for results in measures.values():
            means = (result.sample.mean for result in results if result.labels == labels)
            metric = METRICS[results[0].metric]
            entries.append(Entry(rounded(next(means, math.nan), metric), labels=labels))
        table.rows.append(([names.value(STRATEGY, standing.strategy)], entries))
    table.notes.extend(_notes(comparison))
    return table.condensed()


def _estimate_entry(estimate: statistics.Estimate | None, metric: Metric) -> Entry:
    low, high = (estimate and estimate.interval) or (math.nan, math.nan)
    ends = "" if math.isnan(low) else f"[{rounded(low, metric)}, {rounded(high, metric)}]"
    return Entry(rounded(estimate.value if estimate else math.nan, metric), interval=ends)


def rank_interval(standing: statistics.Standing) -> str:
    """The interval of a rank in whole ranks as text, `[1, 6]`; empty if there is none."""
    if standing.rank.interval is None:
        return ""
    low, high = standing.rank.interval
    return f"[{math.floor(low)}, {math.ceil(high)}]"


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
        "[95 % intervals] are over seeds, not over settings: what other seeds would change; those "
        "of ranks by a bootstrap of the seeds within each setting, paired over strategies.": True,
        "Ahead: the share of seeds in which it is ahead of FedAvg, a tie half. Further columns are "
        "means over all runs.": True,
        f"{left_out} left out, since not all strategies have their seed.": standings.left_out > 0,
        DIVERGED.capitalize(): any(result.diverged for result in comparison.results),
    }
    return [note for note, is_needed in notes.items() if is_needed]
