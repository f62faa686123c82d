"""Check the figures, tables, titles, findings and claims of a study against its experiments before
anything is trained."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from cohort.core.errors import UserError, errors_at, suggest
from cohort.core.paths import CLAIMS_TABLE
from cohort.plan.axes import Values
from cohort.results.at import check_at
from cohort.results.claims import CLAIMS, Comparison, Matrix
from cohort.results.claims.values import paper_results
from cohort.results.figures import KINDS, Kind
from cohort.results.measure import Item
from cohort.results.paper import paper_file, paper_files
from cohort.results.series import label_text
from cohort.results.tables.spec import Leaderboard, Table

Labels = tuple[str, ...]
Axes = Mapping[str, list[Any]]
FullScale = tuple[Axes, Sequence[Values]]
"""The axes of an experiment and its cells."""


def check_item_names(
    figures: Mapping[str, Values], tables: Mapping[str, Values], experiments: Mapping[str, Any]
) -> None:
    """Reject figures and tables whose names clash, or whose experiment does not exist."""
    if CLAIMS_TABLE in {*figures, *tables}:
        raise UserError(
            f"'{CLAIMS_TABLE}' is the name of the table of claims; rename the figure or table"
        )
    for twice in sorted(figures.keys() & tables.keys()):
        raise UserError(f"'{twice}' names both a figure and a table; rename one of them")
    for name, spec in [*figures.items(), *tables.items()]:
        key = spec["experiment"]
        if key not in experiments:
            raise UserError(f"{name}.experiment is '{key}'{suggest(key, experiments)}")


def checked_facets(spec: Values, axes: Axes, cells: Sequence[Values], study: str) -> list[Labels]:
    """Check a figure or table and return the groups of labels that a thinned scale must cover.

    For a figure they are the labels of its panels and that of its hue, for a table, which may have
    gaps, the label along which it subtracts.
    """
    kind = spec.get("kind")
    kinds: Mapping[str | None, type[Item]] = {None: Table, Leaderboard.name: Leaderboard}
    item = (kinds.get(kind) or KINDS[str(kind)]).from_spec(spec)
    item.check()
    pooled = item.averaged() if isinstance(item, Kind) else []
    for label in (*item.shown(), *item.named(), *pooled):
        if label not in axes:
            raise UserError(
                f" names '{label}', which is not an axis of its experiment{suggest(label, axes)}"
            )
    for label, values in item.named().items():
        _check_known(values, axes[label], f" names '{{}}', which {label} does not have here")
    item.check_cells(axes, cells)
    if isinstance(item, Kind):
        if item.limits and item.limits[0] >= item.limits[1]:
            raise UserError(f".limits is {item.limits}: the lowest value comes first")
        for label in pooled:
            if label in item.shown():
                raise UserError(
                    f".pooled names '{label}', but keeps it apart as a panel, hue or x; "
                    "it can do one of them only"
                )
    _check_averages(item, axes, cells)
    end = min((cell["rounds"] for cell in cells if "rounds" in cell), default=0)
    for measure in item.measures():
        check_at(measure.at, end or sys.maxsize, "runs shown here")
    _check_paper(item, spec, axes, cells, study)
    if isinstance(item, Table):
        return [tuple(item.minus or ())]
    if not isinstance(item, Kind):
        return [item.shown()]
    return [item.panels(), item.facets()[len(item.panels()) :]]


def checked_key_figure(text: Mapping[str, Any], figures: Mapping[str, Values]) -> str:
    """The name of the figure that opens a study's page; empty if the study names none. Raise
    UserError if it is not a figure of the study."""
    name: str = text.get("key_figure", "")
    if name and name not in figures:
        raise UserError(f"key_figure is '{name}', which is not a figure{suggest(name, figures)}")
    return name


def checked_findings(
    text: Mapping[str, Any], tables: Mapping[str, Values], matrices: Mapping[str, FullScale]
) -> list[Values]:
    """The findings of a study. Raise UserError for one that rests on a table, a claim, or a value
    of the axes of its experiment that the study does not have."""
    findings: list[Values] = text.get("findings", [])
    shown = {**tables, **text.get("claims", {})}
    for number, finding in enumerate(findings):
        for reference in finding["rests_on"]:
            name, *values, _ = reference.split(", ")
            where = f"findings[{number}].rests_on names"
            if name not in shown:
                near = suggest(name, shown)
                raise UserError(f"{where} '{name}', which is neither a table nor a claim{near}")
            spec = shown[name]
            measures = [spec.get("metric", ""), spec.get("at", "last"), *spec.get("also", ())]
            allowed = set(" ".join(map(str, measures)).split())
            axes, _ = matrices[spec["experiment"]]
            allowed |= {label_text(value) for axis in axes.values() for value in axis}
            _check_known(values, sorted(allowed), f"{where} '{{}}', which {name} does not show")
    return findings


def checked_titles(
    texts: Sequence[Mapping[str, Any]],
    strategies: Mapping[str, str],
    matrices: Collection[FullScale],
) -> dict[str, dict[str, str]]:
    """Merge the titles of label values of a study and, before it in `texts`, of those that it
    extends. Raise UserError for a value that no cell has, or for a title of two values of a label
    in otherwise equal cells of an experiment."""
    for label, values in texts[-1].get("titles", {}).items():
        existing = {label_text(value) for axes, _ in matrices for value in axes.get(label, [])}
        _check_known(values, sorted(existing), f"titles.{label} names '{{}}', which no cell has")
    titles: dict[str, dict[str, str]] = {}
    for text in texts:
        for label, values in text.get("titles", {}).items():
            titles[label] = titles.get(label, {}) | values
    for label in {"strategy", *titles}:
        defaults = strategies if label == "strategy" else {}
        for axes, cells in matrices:
            _check_distinct(label, {**defaults, **titles.get(label, {})}, axes, cells)
    return titles


def resolved_claims(
    claims: Mapping[str, Values],
    matrices: Mapping[str, FullScale],
    shares: Mapping[str, float],
    study: str,
) -> dict[str, Values]:
    """Check each claim; add its comparisons and the shares of rounds of its experiments.

    `shares` is, by experiment, the fraction of its rounds that this scale trains.
    """
    matrix = Matrix(matrices if claims else {})
    resolved = {}
    for name, spec in claims.items():
        with errors_at(f"claims.{name}"):
            claim = CLAIMS[spec["kind"]].from_spec(spec)
            claim.check()
            comparisons: list[Comparison] = claim.planned_comparisons(matrix)
            points = [point for comparison in comparisons for point in comparison.points]
            for point in points:
                owner = f"runs of {point.experiment} that it compares"
                check_at(point.at, point.rounds, owner)
            results = paper_results(study, points, claim.paper) if claim.paper else []
            if claim.paper and not any(value or curve for value, curve in results):
                files = " or ".join(map(str, paper_files(study)))
                raise UserError(
                    f"paper is '{claim.paper}', but no value of it in {files} fits what is "
                    f"compared ({claim.metric}, at {claim.at}); compare their labels"
                )
        experiments = dict.fromkeys([claim.experiment, *(point.experiment for point in points)])
        resolved[name] = spec | {
            "rounds": {name: shares[name] for name in experiments},
            "comparisons": [dataclasses.asdict(comparison) for comparison in comparisons],
        }
    return resolved


def _check_known(values: Iterable[str], existing: Iterable[Any], sentence: str) -> None:
    """Raise a UserError of this sentence about the first value that does not exist."""
    texts = [label_text(value) for value in existing]
    for value in values:
        if value not in texts:
            raise UserError(f"{sentence.format(value)}{suggest(value, texts)}")


def _check_distinct(
    label: str, titles: Mapping[str, str], axes: Axes, cells: Sequence[Values]
) -> None:
    values = [label_text(value) for value in axes.get(label, [])]
    counts = Counter(titles.get(value, value) for value in values)
    other_labels = [other for other in axes if other != label]
    seen: dict[tuple[Any, ...], str] = {}
    for cell in cells if counts.total() > len(counts) else ():
        value = label_text(cell.get(label))
        title = titles.get(value, value)
        key = (title, *(label_text(cell.get(other)) for other in other_labels))
        if seen.setdefault(key, value) != value:
            raise UserError(
                f"{label} '{seen[key]}' and '{value}' have one title, '{title}'; "
                f"give one of them another under titles.{label}"
            )


def _check_averages(item: Item, axes: Axes, cells: Iterable[Values]) -> None:
    """Reject to average runs that differ in more than their seed."""
    shown = item.shown()
    free = [
        axis
        for axis, values in axes.items()
        if len(values) > 1 and axis not in (*shown, "seed") and not item.ignores(axis)
    ]
    seen: dict[tuple[Any, ...], Values] = {}
    for cell in cells:
        first = seen.setdefault(tuple(cell.get(label) for label in shown), cell)
        for axis in free:
            if cell.get(axis) != first.get(axis):
                raise UserError(
                    f" would average runs with {axis} {first.get(axis)} and "
                    f"{cell.get(axis)} as if they were seeds; keep them apart by {axis} (panels, "
                    "hue, x or rows), or show an experiment that has one of them"
                )


def _check_paper(
    item: Item, spec: Mapping[str, Any], axes: Axes, cells: Iterable[Values], study: str
) -> None:
    """Reject a paper's item that is unknown, fits nothing shown, or has two values for a result."""
    file = paper_file(study, spec)
    if file is None:
        return
    measures = item.measures()
    matches, *_ = [measure.matches(file, cells, axes) for measure in measures]
    if not any(match.values for match in matches):
        metric, at = measures[0].shown_metric, measures[0].at
        wanted = metric if measures[0].curves else f"{metric}, at {at}"
        raise UserError(
            f"paper is '{spec['paper']}', but no value of it in {file} fits a result "
            f"shown here ({wanted}); compare their labels"
        )
