"""Judges the claims of a study and writes them in the forms that its outputs' endings ask for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.claims.claim import Claim
from cohort.claims.layout import lay_out
from cohort.claims.matrix import Comparison, Point
from cohort.claims.paper import Paper
from cohort.claims.values import from_paper, measured
from cohort.claims.verdict import Verdict, judge_paper, judge_runs
from cohort.core.files import write_text
from cohort.metrics.names import Names
from cohort.metrics.summary import read_metric, reads_generated
from cohort.tables.forms import latex, markdown

if TYPE_CHECKING:
    from pandas import DataFrame

TITLE = "Claims of the paper"
NO_VERDICT = "no verdict"
GENERATED_EVIDENCE = "generated stand-in data"


def judge(spec: Mapping[str, Any], outputs: Sequence[str | Path]) -> None:
    """Judge every claim of `spec`, each on our own runs and on the paper's own values: .csv holds all, .md and .tex are for reading."""
    table = judged(spec)
    layout = lay_out(table, spec["scale"])
    forms = {
        ".csv": lambda: table.to_csv(index=False, lineterminator="\n"),
        ".md": lambda: markdown(layout, TITLE, ""),
        ".tex": lambda: latex(layout, TITLE, ""),
    }
    for output in outputs:
        write_text(output, forms[Path(output).suffix]())


def judged(spec: Mapping[str, Any]) -> DataFrame:
    """A row for each claim."""
    import pandas as pd

    paper = Paper(spec["study"])
    names = Names(orders={}, titles=dict(spec.get("titles", {})))
    return pd.DataFrame(
        [_row(name, entry, spec["metrics"], paper, names) for name, entry in spec["claims"].items()]
    )


def _row(
    name: str, entry: Mapping[str, Any], files: Mapping[str, str], paper: Paper, names: Names
) -> dict[str, Any]:
    claim, comparisons = claim_of(entry), [_comparison(one) for one in entry["comparisons"]]
    ours = dataclasses.replace(claim, at=_earlier(claim.at, entry["rounds"][claim.experiment]))
    our_comparisons = [_looked_at_earlier(one, entry["rounds"]) for one in comparisons]
    points, our_points = (
        [point for one in made for point in one.points] for made in (comparisons, our_comparisons)
    )

    def read(experiment: str, metric: str) -> DataFrame | None:
        return read_metric(files[experiment], metric) if experiment in files else None

    runs = judge_runs(ours, our_comparisons, measured(our_points, read), names)
    says = judge_paper(claim, comparisons, from_paper(points, paper, claim.paper), names)
    if any(
        reads_generated(files[one])
        for one in dict.fromkeys(point.experiment for point in points)
        if one in files
    ):
        runs, says = (
            Verdict(NO_VERDICT, GENERATED_EVIDENCE, runs.values),
            Verdict(NO_VERDICT, GENERATED_EVIDENCE, []),
        )
    return {
        "claim": name,
        "says": claim.says,
        "where": claim.where,
        "kind": claim.name,
        "metric": claim.metric,
        "at": ours.at,
        "measured": runs.word,
        "measured_evidence": runs.evidence,
        **{
            count: sum(getattr(value, count) for value in runs.values)
            for count in ("n", "planned", "diverged")
        },
        "paper": says.word,
        "paper_evidence": says.evidence,
        "doubtful": "; ".join(
            dict.fromkeys(value.doubtful for value in says.values if value.doubtful)
        ),
    }


def claim_of(entry: Mapping[str, Any]) -> Claim:
    """The claim that an entry of a study describes."""
    from cohort.claims import CLAIMS  # the catalog imports this module

    kind = CLAIMS[entry["kind"]]
    return kind(
        **{
            field.name: entry[field.name]
            for field in dataclasses.fields(kind)
            if field.name in entry
        }
    )


def _looked_at_earlier(comparison: Comparison, shares: Mapping[str, float]) -> Comparison:
    """The same of runs with this share of the rounds, by experiment."""
    points = [
        dataclasses.replace(point, at=_earlier(point.at, shares[point.experiment]))
        for point in comparison.points
    ]
    return dataclasses.replace(comparison, points=points)


def _earlier(at: int | str, share: float) -> int | str:
    return max(1, round(at * share)) if isinstance(at, int) else at


def _comparison(entry: Mapping[str, Any]) -> Comparison:
    return Comparison([Point(**point) for point in entry["points"]], entry["name"], entry["way"])
