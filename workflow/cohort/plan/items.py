"""Check a study's figures, tables, titles and claims before anything is trained."""

import dataclasses
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from cohort.core.errors import UserError, check_allowed, errors_at
from cohort.core.paths import CLAIMS_TABLE
from cohort.plan.matrix import Values
from cohort.results import figures as drawing
from cohort.results import paper
from cohort.results.claims.claim import Matrix, PointComparison
from cohort.results.claims.kinds import CLAIMS
from cohort.results.claims.values import paper_results
from cohort.results.comparison import Item, Leaderboard, Table
from cohort.results.names import RECORDED
from cohort.results.series import check_at, label_text
from cohort.results.statistics import values_left_out
from cohort.training.cell import Cell
from cohort.training.evaluators import EVALUATORS

Axes = Mapping[str, list[Any]]
AxesAndCells = tuple[Axes, Sequence[Values]]
"""The axes of an experiment and its cells."""
SECTIONS = {CLAIMS_TABLE, "figures", "findings", "main", "method", "runs", "tables", "waiting"}


def check_names(
    content: Mapping[str, Any], figures: Mapping[str, Values], tables: Mapping[str, Values]
) -> None:
    """Reject clashing names of figures and tables, unknown experiments, an unknown key figure."""
    if taken := sorted(SECTIONS & {*figures, *tables}):
        raise UserError(f"'{taken[0]}' is the name of a part of the page; rename yours")
    if shared := sorted(figures.keys() & tables.keys()):
        raise UserError(f"'{shared[0]}' names both a figure and a table; rename one of them")
    experiments = content["experiments"]
    for part, specs in {"figures": figures, "tables": tables}.items():
        for name, spec in specs.items():
            key = spec["experiment"]
            check_allowed(key, experiments, f"{part}.{name}.experiment is '{key}'")
    if key := content.get("key_figure"):
        check_allowed(key, figures, f"key_figure is '{key}', which is not a figure")


def checked_facets(
    spec: Values, axes: Axes, cells: Sequence[Values], study: str
) -> list[tuple[str, ...]]:
    """Check a figure or table and return the groups of labels that a thinned scale must cover: a
    figure's panels and its hue; the label along which a table subtracts."""
    item = _item_of(spec)
    item.check()
    for label in (*item.labels(), *item.mentioned_values(), *(getattr(item, "pooled", None) or ())):
        check_allowed(label, axes, f" names '{label}', which is not an axis of its experiment")
    for label, values in item.mentioned_values().items():
        texts = list(map(label_text, axes[label]))
        for value in values:
            check_allowed(value, texts, f" names '{value}', which {label} does not have here")
    for label, values in values_left_out(spec.get("without")).items():
        if {*map(label_text, axes[label])} <= {*values}:
            raise UserError(f".without leaves no {label}")
    if (limits := spec.get("limits", [0, 1])) != sorted({*limits}):
        raise UserError(f".limits are {limits}; the lowest comes first")
    item.check_cells(axes, cells)
    _check_averages(item, axes, cells)
    end = min((cell["rounds"] for cell in cells if "rounds" in cell), default=0)
    for measure in item.measures():
        check_at(measure.at, end or sys.maxsize, "runs shown here")
    _check_paper(item, spec, axes, cells, study)
    if isinstance(item, Table):
        return [tuple(item.mentioned_values())]
    if not isinstance(item, drawing.Kind):
        return [item.labels()]
    return [item.panels(), item.facets()[len(item.panels()) :]]


def check_recorded(spec: Values, cells: Sequence[Cell]) -> None:
    """Reject a figure or table of a metric that none of these cells records."""
    for metric in {measure.metric for measure in _item_of(spec).measures()} - RECORDED.keys():
        if cells and not any(_records(cell, metric) for cell in cells):
            settings = [part.setting for part in EVALUATORS.values() if metric in part.metrics]
            hint = f"; set {' or '.join(settings)}" if settings else ""
            raise UserError(f" shows {metric}, which none of its runs records{hint}")


def checked_titles(
    contents: Sequence[Mapping[str, Any]], matrices: Collection[AxesAndCells]
) -> dict[str, dict[str, str]]:
    """Merge the titles of these studies, this one's last; UserError for a value no cell has."""
    for label, values in contents[-1].get("titles", {}).items():
        existing = {label_text(value) for axes, _ in matrices for value in axes.get(label, [])}
        for value in values:
            problem = f"titles.{label} names '{value}', which no cell has"
            check_allowed(value, sorted(existing), problem)
    titles: dict[str, dict[str, str]] = {}
    for content in contents:
        for label, values in content.get("titles", {}).items():
            titles[label] = titles.get(label, {}) | values
    return titles


def resolved_claims(
    claims: Values, matrices: Mapping[str, AxesAndCells], study: str
) -> dict[str, Values]:
    """Check each claim, and add its comparisons."""
    matrix = Matrix(matrices if claims else {})
    resolved = {}
    for name, spec in claims.items():
        with errors_at(f"claims.{name}"):
            claim = CLAIMS[spec["kind"]].from_spec(spec)
            claim.check()
            comparisons: list[PointComparison] = claim.planned_comparisons(matrix)
            points = [point for comparison in comparisons for point in comparison.points]
            for point in points:
                check_at(point.at, point.rounds, f"runs of {point.experiment} that it compares")
            results = paper_results(study, points, claim.paper) if claim.paper else []
            if claim.paper and not any(value or curve for value, curve in results):
                files = " or ".join(map(str, paper.paper_files(study)))
                fits = f"fits what is compared ({claim.metric}, at {claim.at})"
                why = f"no value of it in {files} {fits}; compare their labels"
                raise UserError(f"paper is '{claim.paper}', but {why}")
        resolved[name] = spec | {"comparisons": list(map(dataclasses.asdict, comparisons))}
    return resolved


def _item_of(spec: Values) -> Item:
    kinds: Mapping[str | None, type[Item]] = {None: Table, Leaderboard.name: Leaderboard}
    kind = spec.get("kind")
    return (kinds.get(kind) or drawing.KINDS[str(kind)]).from_spec(spec)


def _records(cell: Cell, metric: str) -> bool:
    parts: list[Any] = [cell.procedure, cell.selector, cell.server]
    parts += [kind() for kind in EVALUATORS.values() if kind().plan(cell)]
    return any(metric in part.metrics for part in parts)


def _check_averages(item: Item, axes: Axes, cells: Iterable[Values]) -> None:
    """Reject to average runs that differ in more than their seed."""
    labels = item.labels()
    several = [axis for axis, values in axes.items() if len(values) > 1]
    free = [axis for axis in several if axis not in (*labels, "seed") and not item.ignores(axis)]
    seen: dict[tuple[Any, ...], Values] = {}
    for cell in cells:
        first = seen.setdefault(tuple(cell.get(label) for label in labels), cell)
        for axis in free:
            if cell.get(axis) != first.get(axis):
                values = f"{axis} {first.get(axis)} and {cell.get(axis)} as if they were seeds"
                hint = "panels, hue, x or rows), or show an experiment that has one of them"
                raise UserError(f" would average runs with {values}; keep them apart by it ({hint}")


def _check_paper(
    item: Item, spec: Mapping[str, Any], axes: Axes, cells: Iterable[Values], study: str
) -> None:
    """Reject a paper's item that is unknown, fits nothing shown, or has two values for a result."""
    if (file := paper.paper_file(study, spec)) is None:
        return
    measures = item.measures()
    first, *_ = [measure.matches(file, cells, axes) for measure in measures]
    if not any(match.values for match in first):
        metric, at = measures[0].shown_metric, measures[0].at
        wanted = metric if measures[0].curves else f"{metric}, at {at}"
        fits = f"fits a result shown here ({wanted}); compare their labels"
        raise UserError(f"paper is '{spec['paper']}', but no value of it in {file} {fits}")
