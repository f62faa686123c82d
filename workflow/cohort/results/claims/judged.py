"""Claims with their verdicts, as they are written, read, and laid out as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from cohort.core.sealed_json import read_sealed
from cohort.core.typed import from_json
from cohort.results.claims.decision import CROSS, EQUAL, NOT_JUDGED, OPEN, TIE
from cohort.results.claims.evidence import Evidence
from cohort.results.claims.verdict import NO_PAPER
from cohort.results.comparison import FIX
from cohort.results.intervals import NOT_ENOUGH
from cohort.results.paper import doubts
from cohort.results.tables.layout import DAGGER, DIVERGED, DOUBLE_DAGGER, Entry, Layout

MEASURED = (
    "Measured: a verdict is about the typical seed, and all comparisons of a claim must hold. Held "
    "or not held: at least 5 seeds, paired, of which the interval of the mean (Student's t) and an "
    "exact sign test are both on one side of what the claim asks; leans: the interval of 3 or 4 "
    "seeds is."
)
BRACKETS = (
    "In brackets: by how much the closest comparison exceeds what the claim asks, the one-sided "
    "95 % bounds of that, and in how many seeds it does."
)
PAPER = "The paper's own numbers are compared as they are, without intervals."
TOO_FEW = f"{NOT_ENOUGH.capitalize()}: a planned run is missing, or there are fewer than 3 seeds."


@dataclass(frozen=True)
class NamedPoint:
    """A point of a comparison: its name, and the experiment and labels of its cells."""

    name: str
    experiment: str
    labels: dict[str, str]


@dataclass(frozen=True)
class JudgedComparison:
    """A comparison of a claim: what tells it from the others, its points, and the evidence by the
    paper's values (side `paper`) and by our runs (side `ours`)."""

    name: str
    points: list[NamedPoint]
    sides: dict[str, Evidence]


@dataclass(frozen=True, kw_only=True)
class JudgedClaim:
    """A claim with its verdicts, by our runs (`measured`) and by the paper's own values, and the
    evidence for them: as text, and comparison by comparison."""

    claim: str
    says: str
    where: str
    kind: str
    metric: str
    at: int | str
    measured: str
    measured_evidence: str
    n: int
    planned: int
    diverged: int
    values: str
    paper: str
    paper_evidence: str
    doubtful: str
    gap: str
    paper_gap: str
    comparisons: list[JudgedComparison]


def claims_table(claims: Sequence[JudgedClaim]) -> pd.DataFrame:
    """The claims as a table, a row each, without their single comparisons."""
    without = ["comparisons", "gap", "paper_gap"]
    return pd.DataFrame(list(map(vars, claims))).drop(columns=without)


def read_judged(file: str | Path) -> list[JudgedClaim]:
    """Read claims that `write_judged` wrote as JSON. Raise UserError for a missing or damaged
    file."""
    claims: list[JudgedClaim] = from_json(
        list[JudgedClaim], read_sealed(file, "judged claims", FIX)["claims"]
    )
    return claims


def lay_out(claims: Sequence[JudgedClaim], scale: str) -> Layout:
    """Lay out claims as a table, a row each: sentence, where the paper says it, and the verdicts on
    our runs and, if there are any, on the paper's values, each with its evidence."""
    has_paper = any(claim.paper != NO_PAPER for claim in claims)
    columns = ["Measured", "The paper's own numbers say"] if has_paper else ["Measured"]
    layout = Layout(["Claim", "Where"], columns, prose=True)
    for claim in claims:
        runs = Entry(
            claim.measured + (DAGGER if claim.diverged else ""),
            f"{claim.n} of {claim.planned} runs",
            more=claim.measured_evidence,
        )
        mark = DOUBLE_DAGGER if claim.doubtful else ""
        paper = Entry(claim.paper + mark, more=claim.paper_evidence)
        entries = [runs, paper] if has_paper else [runs]
        layout.lines.append(([claim.says, claim.where], entries))
    layout.notes.extend(_notes(claims, scale, has_paper))
    return layout


def without_evidence(claims: Sequence[JudgedClaim]) -> list[JudgedClaim]:
    """The claims with their verdicts only, as a paper would print them."""
    return [replace(claim, measured_evidence="", paper_evidence="") for claim in claims]


def _notes(claims: Sequence[JudgedClaim], scale: str, has_paper: bool) -> list[str]:
    has_brackets = any(" [" in claim.measured_evidence for claim in claims)
    rules = [MEASURED, BRACKETS if has_brackets else "", PAPER if has_paper else ""]
    notes = [" ".join(filter(None, rules))]
    verdicts = [claim.measured for claim in claims]
    notes += [TOO_FEW] if NOT_ENOUGH in verdicts else []
    if any(CROSS in claim.measured_evidence + claim.paper_evidence for claim in claims):
        notes.append(f"{CROSS}: what does not hold.")
    if any(f"{OPEN} " in claim.measured_evidence for claim in claims):
        notes.append(f"{OPEN}: what is undecided.")
    if TIE in verdicts or any(claim.paper == TIE for claim in claims):
        notes.append(f"{EQUAL}: an exact tie.")
    if any(claim.diverged for claim in claims):
        notes.append(f"{DAGGER}: {DIVERGED}")
    if has_paper and any(claim.paper == NO_PAPER for claim in claims):
        notes.append("No value: the paper and its authors' logs do not say.")
    if reasons := doubts(claim.doubtful for claim in claims):
        notes.append(f"{DOUBLE_DAGGER} doubtful: {reasons}.")
    if NOT_JUDGED in verdicts:
        notes.append(
            f"Scale {scale} is a cheaper version of the paper's runs: what is measured here proves "
            "nothing about the paper."
        )
    return notes
