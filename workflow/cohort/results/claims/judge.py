"""Judges the claims of a study and writes the verdicts as CSV, Markdown and LaTeX."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from cohort.core.files import write_text
from cohort.results.at import scaled
from cohort.results.claims import CLAIMS
from cohort.results.claims.claim import Claim
from cohort.results.claims.evidence import seeds_text
from cohort.results.claims.layout import lay_out
from cohort.results.claims.matrix import Comparison, Point
from cohort.results.claims.numbers import compared
from cohort.results.claims.paper import Paper
from cohort.results.claims.values import from_paper, measured, seconds_per_seed
from cohort.results.claims.verdict import Verdict, judge_paper, judge_runs
from cohort.results.names import Names
from cohort.results.series import read_metric, reads_generated
from cohort.results.tables.forms import latex, markdown

TITLE = "Claims"
NO_VERDICT = "no verdict"
GENERATED_EVIDENCE = "generated stand-in data"


def judge(spec: Mapping[str, Any], outputs: Sequence[str | Path]) -> None:
    """Judge the claims of `spec` and write them to each output (.csv, .md, .tex, or .json with
    every comparison and its numbers)."""
    found = _each(spec)
    table = _table(found)
    layout = lay_out(table, spec["scale"])
    formats = {
        ".csv": lambda: table.to_csv(index=False, lineterminator="\n"),
        ".md": lambda: markdown(layout, TITLE, ""),
        ".tex": lambda: latex(layout, TITLE, ""),
        ".json": lambda: json.dumps([one.row | one.numbers for one in found]),
    }
    for output in outputs:
        write_text(output, formats[Path(output).suffix]())


@dataclass(frozen=True)
class Judged:
    """A claim's row in the table, and every comparison behind it with its numbers."""

    row: dict[str, Any]
    numbers: dict[str, Any]


def judged(spec: Mapping[str, Any]) -> pd.DataFrame:
    """One row per claim: its verdict and evidence on our runs and on the paper's own values."""
    return _table(_each(spec))


def _table(found: Sequence[Judged]) -> pd.DataFrame:
    return pd.DataFrame([one.row for one in found])


def _each(spec: Mapping[str, Any]) -> list[Judged]:
    paper = Paper(spec["study"])
    names = Names(orders={}, titles=dict(spec.get("titles", {})))
    judge_row = partial(_row, files=spec["metrics"], paper=paper, names=names, judged=_judged(spec))
    return [judge_row(name, entry) for name, entry in spec["claims"].items()]


def _judged(spec: Mapping[str, Any]) -> bool:
    """Whether runs at this scale can support a claim: those of a paper's study at full scale only,
    those of a study that reproduces no paper at any scale."""
    return spec["scale"] == "full" or not spec.get("reproduces", True)


def _row(
    name: str,
    entry: Mapping[str, Any],
    *,
    files: Mapping[str, str],
    paper: Paper,
    names: Names,
    judged: bool,
) -> Judged:
    claim = claim_of(entry)
    ours = dataclasses.replace(claim, at=scaled(claim.at, entry["rounds"][claim.experiment]))
    comparisons = list(map(_comparison, entry["comparisons"]))
    our_comparisons = [_with_scaled_rounds(one, entry["rounds"]) for one in comparisons]
    points = [point for one in comparisons for point in one.points]

    def read(experiment: str, metric: str) -> pd.DataFrame | None:
        return read_metric(files[experiment], metric) if experiment in files else None

    runs = judge_runs(
        ours,
        our_comparisons,
        measured(points, read),
        names,
        judged=judged,
        seconds=partial(seconds_per_seed, points, read),
    )
    papers = judge_paper(claim, comparisons, from_paper(points, paper, claim.paper), names)
    experiments = dict.fromkeys(point.experiment for point in points)
    if any(reads_generated(files[one]) for one in experiments if one in files):
        runs = Verdict(NO_VERDICT, GENERATED_EVIDENCE, runs.values)
        papers = Verdict(NO_VERDICT, GENERATED_EVIDENCE, [])
    found = compared(ours, comparisons, runs, papers, names)
    numbers = {"comparisons": found, "gap": runs.gap, "paper_gap": papers.gap}
    return Judged(_named(name, ours, runs, papers), numbers)


def _named(name: str, claim: Claim, runs: Verdict, papers: Verdict) -> dict[str, Any]:
    """The verdicts on a claim under the names of the table's columns."""
    doubts = dict.fromkeys(value.doubtful for value in papers.values if value.doubtful)
    return {
        "claim": name,
        "says": claim.says,
        "where": claim.where,
        "kind": claim.name,
        "metric": claim.metric,
        "at": claim.at,
        "measured": runs.word,
        "measured_evidence": runs.evidence,
        "n": sum(value.n for value in runs.values),
        "planned": sum(value.planned for value in runs.values),
        "diverged": sum(value.diverged for value in runs.values),
        "values": runs.statistics,
        "seeds_to_decide": seeds_text(runs.seeds) if runs.seeds else "",
        "paper": papers.word,
        "paper_evidence": papers.evidence,
        "doubtful": "; ".join(doubts),
    }


def claim_of(entry: Mapping[str, Any]) -> Claim:
    """Build the claim that an entry of a study describes."""
    kind = CLAIMS[entry["kind"]]
    fields = (field.name for field in dataclasses.fields(kind))
    return kind(**{name: entry[name] for name in fields if name in entry})


def _with_scaled_rounds(comparison: Comparison, shares: Mapping[str, float]) -> Comparison:
    """The comparison for runs that train these shares of their rounds, by experiment."""
    points = [
        dataclasses.replace(point, at=scaled(point.at, shares[point.experiment]))
        for point in comparison.points
    ]
    return dataclasses.replace(comparison, points=points)


def _comparison(entry: Mapping[str, Any]) -> Comparison:
    return Comparison([Point(**point) for point in entry["points"]], entry["name"], entry["way"])
