"""Claims with their verdicts, as they are written, read, and laid out as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cohort.core.lazy import lazy
from cohort.core.sealed_json import from_json, read_sealed
from cohort.results.comparison import FIX
from cohort.results.intervals import NOT_ENOUGH
from cohort.results.paper import doubts
from cohort.results.tables.layout import DAGGER, DIVERGED, DOUBLE_DAGGER, Entry, Layout

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")

HELD, NOT_HELD, UNDECIDED, TIE = "held", "not held", "undecided", "tie"
LEANS_HELD, LEANS_NOT_HELD = "leans towards held", "leans towards not held"
NO_PAPER, NOT_JUDGED = "no value", "not judged at this scale"
HOLDS, LEANING = (HELD, LEANS_HELD), {HELD: LEANS_HELD, NOT_HELD: LEANS_NOT_HELD}
WORST_FIRST = (NOT_HELD, LEANS_NOT_HELD, TIE, UNDECIDED, LEANS_HELD, HELD)
OPEN_VERDICTS = (UNDECIDED, LEANS_HELD, LEANS_NOT_HELD)
SHOWN_ORDER = (HELD, NOT_HELD, LEANS_HELD, LEANS_NOT_HELD, TIE, UNDECIDED)
CROSS, OPEN, EQUAL = "✗", "?", "="
MARKS = {NOT_HELD: CROSS, LEANS_NOT_HELD: CROSS, UNDECIDED: OPEN, TIE: EQUAL}

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
class Numbers:
    """A point's value, or the mean, deviation and interval of its runs, as text."""

    mean: str = ""
    sd: str = ""
    low: str = ""
    high: str = ""
    n: int = 0
    planned: int = 0


@dataclass(frozen=True)
class Difference:
    """By how much a comparison exceeds what its claim asks, the bounds of this difference, and in
    how many seeds it is above 0; a claim about every run has only the last."""

    seeds: str
    mean: str = ""
    low: str = ""
    high: str = ""

    @property
    def text(self) -> str:
        """The difference with its bounds, and the number of seeds, in one text."""
        return f"{self.mean}, {self.low} to {self.high}, {self.seeds}" if self.mean else self.seeds


@dataclass(frozen=True)
class Evidence:
    """The verdict on one comparison, by our runs or by the paper's values, and the numbers behind
    it: those of each point, and `shown`, which puts them in relation; `text` says all. Without a
    value for each point that it needs, a comparison has neither verdict nor relation."""

    numbers: list[Numbers]
    opening: str = ""
    shown: str = ""
    verdict: str = ""
    difference: Difference | None = None
    text: str = ""
    name: str = ""


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
    paper: str
    paper_evidence: str
    doubtful: str
    gap: str
    paper_gap: str
    comparisons: list[JudgedComparison]


def claims_table(claims: Sequence[JudgedClaim]) -> pd.DataFrame:
    """The claims as a table, a row each, without their single comparisons."""
    return pd.DataFrame(list(map(vars, claims))).drop(columns=["comparisons", "gap", "paper_gap"])


def read_judged(file: str | Path) -> list[JudgedClaim]:
    """Read claims that `write_judged` wrote as JSON. Raise UserError for a missing or damaged
    file."""
    claims = read_sealed(file, "judged claims", FIX)["claims"]
    return [from_json(JudgedClaim, claim) for claim in claims]


def lay_out(claims: Sequence[JudgedClaim], scale: str) -> Layout:
    """Lay out claims as a table, a row each: sentence, where the paper says it, and the verdicts on
    our runs and, if there are any, on the paper's values, each with its evidence."""
    has_paper = any(claim.paper != NO_PAPER for claim in claims)
    columns = ["Measured", "The paper's own numbers say"] if has_paper else ["Measured"]
    layout = Layout(["Claim", "Where"], columns, prose=True)
    for claim in claims:
        mark, runs = DAGGER * bool(claim.diverged), f"{claim.n} of {claim.planned} runs"
        entries = [Entry(claim.measured + mark, runs, more=claim.measured_evidence)]
        if has_paper:
            mark = DOUBLE_DAGGER * bool(claim.doubtful)
            entries.append(Entry(claim.paper + mark, more=claim.paper_evidence))
        layout.lines.append(([claim.says, claim.where], entries))
    verdicts = {claim.measured for claim in claims}
    papers = {claim.paper for claim in claims if has_paper}
    evidence = "\n".join(claim.measured_evidence for claim in claims)
    doubtful = doubts(claim.doubtful for claim in claims)
    rules = [MEASURED, BRACKETS if " [" in evidence else "", PAPER if has_paper else ""]
    crossed = CROSS in evidence or any(CROSS in claim.paper_evidence for claim in claims)
    notes = {
        " ".join(filter(None, rules)): True,
        TOO_FEW: NOT_ENOUGH in verdicts,
        f"{CROSS}: what does not hold.": crossed,
        f"{OPEN}: what is undecided.": f"{OPEN} " in evidence,
        f"{EQUAL}: an exact tie.": TIE in verdicts | papers,
        f"{DAGGER}: {DIVERGED}": any(claim.diverged for claim in claims),
        "No value: the paper and its authors' logs do not say.": NO_PAPER in papers,
        f"{DOUBLE_DAGGER} doubtful: {doubtful}.": bool(doubtful),
        f"Scale {scale} is a cheaper version of the paper's runs: what is measured here proves "
        "nothing about the paper.": NOT_JUDGED in verdicts,
    }
    layout.notes.extend(note for note, is_needed in notes.items() if is_needed)
    return layout
