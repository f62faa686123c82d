"""Lays out judged claims as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cohort.claims.verdict import CROSS, NO_PAPER
from cohort.tables.layout import DAGGER, DOUBLE_DAGGER, Entry, Layout

if TYPE_CHECKING:
    from pandas import DataFrame


def lay_out(claims: DataFrame, scale: str) -> Layout:
    """A row per claim: sentence, place, and the verdicts on our runs and on the paper's values."""
    layout = Layout(["Claim", "Where"], ["Measured", "Paper's own values"], prose=True)
    rows = [dict(zip(claims.columns, row, strict=True)) for row in claims.itertuples(index=False)]
    for claim in rows:
        count = f"{claim['n']} of {claim['planned']} runs"
        runs = Entry(
            claim["measured"],
            count,
            mark=DAGGER if claim["diverged"] else "",
            more=claim["measured_evidence"],
        )
        paper = Entry(
            claim["paper"],
            mark=DOUBLE_DAGGER if claim["doubtful"] else "",
            more=claim["paper_evidence"],
        )
        layout.lines.append(([claim["says"], claim["where"]], [runs, paper]))
    layout.notes.extend(_notes(rows, scale))
    return layout


def _notes(claims: Sequence[Mapping[str, Any]], scale: str) -> list[str]:
    notes = ["Every comparison of a claim must hold, in the mean over seeds, and a tie does not."]
    if any(CROSS in claim["measured_evidence"] + claim["paper_evidence"] for claim in claims):
        notes.append(f"{CROSS}: what does not hold.")
    if any(claim["diverged"] for claim in claims):
        notes.append(f"{DAGGER}: a run diverged; it counts with what it measured before that.")
    if any(claim["paper"] == NO_PAPER for claim in claims):
        notes.append("No value: the paper and its authors' logs do not say.")
    doubts = dict.fromkeys(claim["doubtful"] for claim in claims if claim["doubtful"])
    notes += [f"{DOUBLE_DAGGER} doubtful: {'; '.join(doubts)}."] if doubts else []
    if scale != "full":
        notes.append(
            f"Scale {scale} is a cheaper version of the paper's runs: what is measured here proves "
            "nothing about the paper."
        )
    return notes
