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
from cohort.files import write_text
from cohort.records.names import Names
from cohort.records.summary import is_generated, read_metric
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
    return pd.DataFrame([_row(name, entry, spec["metrics"], paper, names) for name, entry in spec["claims"].items()])


def _row(name: str, entry: Mapping[str, Any], files: Mapping[str, str], paper: Paper, names: Names) -> dict[str, Any]:
    claim, comparisons = claim_of(entry), [_comparison(one) for one in entry["comparisons"]]
    points = [point for one in comparisons for point in one.points]
    needed = dict.fromkeys(point.experiment for point in points)
    metrics = {name: read_metric(files[name], claim.metric) for name in needed if name in files}
    ours = dataclasses.replace(claim, at=entry["runs_at"])
    runs = judge_runs(ours, comparisons, measured(ours, points, metrics), names)
    says = judge_paper(claim, comparisons, from_paper(claim, points, paper), names)
    if any(is_generated(frame) for frame in metrics.values()):
        runs, says = Verdict(NO_VERDICT, GENERATED_EVIDENCE, runs.values), Verdict(NO_VERDICT, GENERATED_EVIDENCE, [])
    return {
        "claim": name,
        "says": claim.says,
        "where": claim.where,
        "kind": claim.name,
        "metric": claim.metric,
        "at": ours.at,
        "measured": runs.word,
        "measured_evidence": runs.evidence,
        **{count: sum(getattr(value, count) for value in runs.values) for count in ("n", "planned", "diverged")},
        "paper": says.word,
        "paper_evidence": says.evidence,
        "doubtful": "; ".join(dict.fromkeys(value.doubtful for value in says.values if value.doubtful)),
    }


def claim_of(entry: Mapping[str, Any]) -> Claim:
    """The claim that an entry of a study describes."""
    from cohort.claims import CLAIMS  # the catalog imports this module

    kind = CLAIMS[entry["kind"]]
    return kind(**{field.name: entry[field.name] for field in dataclasses.fields(kind) if field.name in entry})


def _comparison(entry: Mapping[str, Any]) -> Comparison:
    return Comparison([Point(**point) for point in entry["points"]], entry["name"], entry["way"])
