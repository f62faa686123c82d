"""Claims with their verdicts, as they are written and read."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cohort.core.sealed_json import read_sealed
from cohort.core.typed import from_json
from cohort.results.claims.evidence import Evidence
from cohort.results.comparison import FIX


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
    seeds_to_decide: str
    paper: str
    paper_evidence: str
    doubtful: str
    gap: str
    paper_gap: str
    comparisons: list[JudgedComparison]


def claims_table(claims: Sequence[JudgedClaim]) -> pd.DataFrame:
    """The claims as a table, a row each, without their single comparisons."""
    rows = []
    for claim in claims:
        row = dataclasses.asdict(claim)
        rows.append(
            {key: row[key] for key in row if key not in ("comparisons", "gap", "paper_gap")}
        )
    return pd.DataFrame(rows)


def read_judged(file: str | Path) -> list[JudgedClaim]:
    """Read claims that `write_judged` wrote as JSON. Raise UserError for a missing or damaged
    file."""
    claims: list[JudgedClaim] = from_json(
        list[JudgedClaim], read_sealed(file, "judged claims", FIX)["claims"]
    )
    return claims
