"""Judges the claims of a study and writes the verdicts as CSV, Markdown and LaTeX."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd

from cohort.core.files import write_text
from cohort.core.sealed_json import to_sealed_json
from cohort.core.typed import from_json
from cohort.results.at import scaled_at
from cohort.results.claims import CLAIMS
from cohort.results.claims.claim import Claim
from cohort.results.claims.evidence import Evidence, comparison_name
from cohort.results.claims.judged import (
    JudgedClaim,
    JudgedComparison,
    NamedPoint,
    claims_table,
    lay_out,
    without_evidence,
)
from cohort.results.claims.matrix import Comparison
from cohort.results.claims.paper import paper_values
from cohort.results.claims.values import measured_values
from cohort.results.claims.verdict import Judgment, judge_paper, judge_runs
from cohort.results.files import restored_notes
from cohort.results.names import Names
from cohort.results.series import FULL, is_generated, read_metric
from cohort.results.tables.layout import latex, markdown

TITLE = "Claims"
NO_VERDICT = "no verdict"
GENERATED_EVIDENCE = "generated stand-in data"


def write_judged(spec: Mapping[str, Any], outputs: Sequence[str | Path]) -> None:
    """Judge the claims of `spec` and write them to each output (.csv, .md, .tex, or .json with
    every comparison and its numbers)."""
    claims = judged_claims(spec)
    layout = lay_out(claims, spec["scale"])
    verdicts = lay_out(without_evidence(claims), spec["scale"])
    for form in (layout, verdicts):
        form.notes.extend(restored_notes(spec["metrics"].values()))
    formats = {
        ".csv": lambda: claims_table(claims).to_csv(index=False, lineterminator="\n"),
        ".md": lambda: markdown(layout, TITLE, ""),
        ".tex": lambda: latex(verdicts, TITLE, ""),
        ".json": lambda: to_sealed_json({"claims": list(map(dataclasses.asdict, claims))}),
    }
    for output in outputs:
        write_text(output, formats[Path(output).suffix]())


def judged_claims(spec: Mapping[str, Any]) -> list[JudgedClaim]:
    """Judge each claim by our runs and by the paper's own values; return verdicts and evidence."""
    names = Names(orders={}, titles=dict(spec.get("titles", {})))
    judged = spec["scale"] == FULL or not spec.get("reproduces", True)

    @cache  # claims share experiments and metrics
    def read(experiment: str, metric: str) -> pd.DataFrame | None:
        file = spec["metrics"].get(experiment)
        return read_metric(file, metric) if file else None

    return [
        _judge_claim(name, entry, read=read, study=spec["study"], names=names, judged=judged)
        for name, entry in spec["claims"].items()
    ]


def _judge_claim(
    name: str,
    entry: Mapping[str, Any],
    *,
    read: Callable[[str, str], pd.DataFrame | None],
    study: str,
    names: Names,
    judged: bool,
) -> JudgedClaim:
    """Judge a claim. Unless `judged`, our runs are at a scale that supports no verdict."""
    claim = CLAIMS[entry["kind"]].from_spec(entry)
    ours = dataclasses.replace(claim, at=scaled_at(claim.at, entry["rounds"][claim.experiment]))
    comparisons = from_json(list[Comparison], entry["comparisons"])
    points = [point for comparison in comparisons for point in comparison.points]
    runs = judge_runs(
        ours,
        [_with_scaled_rounds(comparison, entry["rounds"]) for comparison in comparisons],
        measured_values(points, read),
        names,
        judged=judged,
    )
    papers = judge_paper(claim, comparisons, paper_values(points, study, claim.paper), names)
    frames = (read(point.experiment, point.metric) for point in points)
    if any(is_generated(frame) for frame in frames if frame is not None):
        runs = Judgment(NO_VERDICT, GENERATED_EVIDENCE, runs.values)
        papers = Judgment(NO_VERDICT, GENERATED_EVIDENCE, [])
    compared = [
        _judged_comparison(ours, names, *evidence)
        for evidence in zip_longest(comparisons, papers.comparisons, runs.comparisons)
    ]
    return _judged_claim(name, ours, runs, papers, compared)


def _judged_claim(
    name: str, claim: Claim, runs: Judgment, papers: Judgment, compared: list[JudgedComparison]
) -> JudgedClaim:
    return JudgedClaim(
        claim=name,
        says=claim.says,
        where=claim.where,
        kind=claim.name,
        metric=claim.metric,
        at=claim.at,
        measured=runs.verdict,
        measured_evidence=runs.evidence,
        n=sum(value.n for value in runs.values),
        planned=sum(value.planned for value in runs.values),
        diverged=sum(value.diverged for value in runs.values),
        values=runs.statistics,
        paper=papers.verdict,
        paper_evidence=papers.evidence,
        doubtful=papers.doubtful,
        gap=runs.gap,
        paper_gap=papers.gap,
        comparisons=compared,
    )


def _judged_comparison(
    claim: Claim, names: Names, comparison: Comparison, *sides: Evidence | None
) -> JudgedComparison:
    return JudgedComparison(
        comparison_name(comparison, names),
        [
            NamedPoint(claim.name_of(point, names), point.experiment, point.labels)
            for point in comparison.points
        ],
        {side: part for side, part in zip(("paper", "ours"), sides, strict=True) if part},
    )


def _with_scaled_rounds(comparison: Comparison, shares: Mapping[str, float]) -> Comparison:
    """The comparison for runs that train shares of their rounds, given by experiment."""
    points = []
    for point in comparison.points:
        share = shares[point.experiment]
        at, rounds = scaled_at(point.at, share), round(point.rounds * share)
        points.append(dataclasses.replace(point, at=at, rounds=rounds))
    return dataclasses.replace(comparison, points=points)
