"""What `cohort try` and `cohort reproduce` print of the results of a figure or table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from cohort.results.comparison import Comparison, Result
from cohort.results.intervals import ALPHA, Sample
from cohort.results.names import METRICS, Names
from cohort.results.series import FULL, NO_VALUE
from cohort.results.tables.leaderboard import lay_out_leaderboard
from cohort.results.tables.tabulate import numbers_of


def result_lines(comparison: Comparison, names: Names, *, against: bool) -> Iterator[str]:
    """The results of an item, with the verdict against FedAvg or else against the paper."""
    if comparison.standings:
        yield from _standing_lines(comparison, names)
        return
    for title, results in comparison.by_measure().items():
        yield f"\n{title}" + (" (generated data: no reproduction)" if comparison.generated else "")
        yield from _result_lines(results, names, comparison.scale, against=against)
        if against and (sentence := _unequal_seeds(results, names)):
            yield sentence


def result_rows(comparison: Comparison) -> list[dict[Hashable, Any]]:
    """The rows of the item's CSV, each with what is known `against_fedavg`, seed by seed."""
    rows = numbers_of(comparison).to_dict("records")
    if comparison.standings:
        return rows
    return [
        row | {"against_fedavg": _contrast(result)}
        for row, result in zip(rows, comparison.results, strict=True)
    ]


def _contrast(result: Result) -> dict[str, Any] | None:
    """The mean difference from FedAvg with the one-sided bounds behind the verdict on it."""
    if result.against is None:
        return None
    low, high = result.against.interval(2 * ALPHA) if result.against.n > 1 else (None, None)
    verdict = result.against.verdict(METRICS[result.metric].better)
    mean, seeds = result.against.mean, result.against.n
    return {"verdict": verdict, "mean": mean, "low": low, "high": high, "seeds": seeds}


def _standing_lines(comparison: Comparison, names: Names) -> Iterator[str]:
    """The leaderboard as aligned columns, with its notes."""
    layout = lay_out_leaderboard(comparison, names)
    rows = [["", *layout.columns]]
    for words, entries in layout.lines:
        rows.append([*words, *(f"{entry.value} {entry.interval}".rstrip() for entry in entries)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield from (_aligned(texts, widths) for texts in rows)
    yield from layout.notes


def _result_lines(
    results: Sequence[Result], names: Names, scale: str, *, against: bool
) -> Iterator[str]:
    """The results as aligned columns, below the settings that several of them share."""
    varying = [label for label in results[0].labels if label in _varying(results)]
    own = ["strategy", *(label for label in varying if "." in label)]  # what a strategy is
    groups: dict[str, list[list[str]]] = {}
    for result in results:
        setting = _phrases(result, [label for label in varying if label not in own], names)
        last = _against(result) if against else _difference(result, scale)
        texts = [_phrases(result, own, names), _paper(result), _ours(result), last]
        groups.setdefault(setting, []).append(texts)
    head = ["", "paper", "ours", "against FedAvg" if against else "difference"]
    rows = [head, *chain.from_iterable(groups.values())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield _aligned(head, widths)
    for setting, lines in groups.items():
        yield from [setting] if setting else []
        yield from (_aligned(texts, widths) for texts in lines)


def _unequal_seeds(results: Sequence[Result], names: Names) -> str:
    """A sentence that counts the runs of each strategy; empty if all have the same seeds."""
    seeds: dict[str, list[list[str]]] = {}
    for result in results:
        seeds.setdefault(result.labels.get("strategy", ""), []).append(sorted(result.values))
    if len(set(map(str, seeds.values()))) < 2:
        return ""
    counts = []
    for strategy, finished in seeds.items():
        fewest, most = (pick(map(len, finished)) for pick in (min, max))
        count = f"{most}" if fewest == most else f"{fewest} to {most}"
        counts.append(f"{names.phrase('strategy', strategy)} {count}")
    return f"unequal seeds: {', '.join(counts)}; differences are over the seeds that both have"


def _varying(results: Sequence[Result]) -> set[str]:
    """The labels in which results differ, and that of the strategy."""
    values = {value for result in results for value in result.labels.items()}
    counts = Counter(label for label, _ in values)
    return {"strategy", *(label for label, count in counts.items() if count > 1)}


def _aligned(texts: Sequence[str], widths: Sequence[int]) -> str:
    fields = (text.ljust(width) for text, width in zip(texts, widths, strict=True))
    return "  " + "  ".join(fields).rstrip()


def _phrases(result: Result, labels: Iterable[str], names: Names) -> str:
    """The values of some labels as text."""
    shown = (label for label in labels if result.labels.get(label, NO_VALUE) != NO_VALUE)
    return ", ".join(names.phrase(label, result.labels[label]) for label in shown)


def _ours(result: Result) -> str:
    if not result.values:
        return f"{NO_VALUE} (0 of {result.planned})"
    ours = _in_display_units(result, result.sample)
    spread = f" \N{PLUS-MINUS SIGN} {ours.half_width():.{_digits(result)}f}" if ours.n > 1 else ""
    diverged = f", {result.diverged} diverged" if result.diverged else ""
    return f"{ours.mean:.{_digits(result)}f}{spread} ({ours.n} of {result.planned}{diverged})"


def _paper(result: Result) -> str:
    metric = METRICS[result.metric]
    paper = result.paper
    return NO_VALUE if paper is None else f"{paper.value * metric.scale:.{metric.digits}f}"


def _against(result: Result) -> str:
    if result.against is None or not result.against.n:
        return ""
    contrast, digits = _in_display_units(result, result.against), _digits(result)
    bounds = f"{contrast.mean:+.{digits}f}, one seed"
    if contrast.n > 1:
        low, high = contrast.interval(2 * ALPHA)  # the one-sided bounds behind the verdict
        bounds = f"{contrast.mean:+.{digits}f}, {low:+.{digits}f} to {high:+.{digits}f}"
    return f"{contrast.verdict(METRICS[result.metric].better)} ({bounds})"


def _difference(result: Result, scale: str) -> str:
    if result.paper is None or not result.values:
        return ""
    metric = METRICS[result.metric]
    verdict = result.verdict if scale == FULL else f"no verdict at scale {scale}"
    difference = f"{result.difference * metric.scale:+.{metric.digits}f}"
    return ", ".join(text for text in (difference, verdict) if text)


def _in_display_units(result: Result, sample: Sample) -> Sample:
    """Scale a mean and standard deviation to the metric's display unit, e.g. a share to percent."""
    return sample.scaled(METRICS[result.metric].scale)


def _digits(result: Result) -> int:
    return METRICS[result.metric].digits
