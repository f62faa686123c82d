"""`python -m tools.claims_list`: make docs/claims-list.md, every claim with its sentence, and
docs/contradictions.md, those that their own paper contradicts.

A claim is judged by the paper's own values and by the released runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.page import put_section
from benchmarks.tables import table
from cohort.pipeline.specs import claims_spec
from cohort.plan import load
from cohort.results.claims import CLAIMS
from cohort.results.claims.judged import HELD, NO_PAPER, NOT_HELD, TIE, JudgedClaim
from cohort.results.intervals import ENOUGH_SEEDS, NOT_ENOUGH
from cohort.results.names import Names
from tools.claim_words import claim_in_words
from tools.reproduction import judge_released

ROOT = Path(__file__).resolve().parents[1]
PAGE, CONTRADICTIONS = ROOT / "docs/claims-list.md", ROOT / "docs/contradictions.md"
COMMAND = "python -m tools.claims_list"
PAPERS = ("aml", "peco", "ucb", "fedentopt", "stratify")
OWN = "No sentence of the paper, but a question of this study"


@dataclass(frozen=True)
class ListedClaim:
    """A claim as the list shows it."""

    study: str
    name: str
    quote: str
    against: str
    reading: str
    where: str
    says: str
    experiment: str
    compared: str
    paper: str  # the verdict by the paper's own numbers
    comparisons: int
    holding: str  # how many of them the paper's own numbers bear out, if there are several
    seeds: tuple[int, int]  # the fewest and the most of any setting
    ours: str  # the verdict by the released runs; empty if they are too few

    def line(self) -> str:
        """The claim as a Markdown item of the list; in its own words if it quotes no sentence."""
        low, high = self.seeds
        seeds = f"{low}" if low == high else f"{low} to {high}"
        noun = "seed" if self.seeds == (1, 1) else "seeds"
        says = "" if self.quote else f"{self.says} "
        several = self.comparisons > 1 and not self.holding
        count = f" ({self.comparisons} comparisons)" if several else ""
        holding = f" ({self.holding})" if self.holding else ""
        return (
            f"- `{self.name}`: {says}In `{self.experiment}`, {self.compared}{count}. "
            f"*{self.paper.capitalize()}{holding}; {seeds} {noun}.*"
            f"{f' **Our runs: {self.ours}.**' if self.ours else ''}"
        )

    def contradiction(self) -> str:
        """The claim as a Markdown item of those that their own paper contradicts."""
        return (
            f"- **`{self.study}.{self.name}`**, {self.where}: “{self.quote}”\n"
            f"  *Numbers:* {self.against}\n  *Reading:* {self.reading}"
        )


def claims_of(study: str) -> list[ListedClaim]:
    """Judge the claims of a study; return them in the study's order."""
    with chdir(ROOT):
        spec = claims_spec(load({"studies": [study]}), study)
    names = Names(orders={}, titles=dict(spec["titles"]))
    return [
        _listed(study, spec["claims"][claim.claim], claim, names) for claim in judge_released(study)
    ]


def _listed(study: str, entry: dict[str, Any], judged: JudgedClaim, names: Names) -> ListedClaim:
    claim = CLAIMS[entry["kind"]].from_spec(entry)
    seeds = [
        point["seeds"] for comparison in entry["comparisons"] for point in comparison["points"]
    ]
    paper, evidence = judged.paper, judged.paper_evidence
    holding = re.search(r"\b\d+ of \d+(?= hold: )", evidence) if paper != NO_PAPER else None
    return ListedClaim(
        study,
        judged.claim,
        claim.quote,
        claim.against,
        claim.reading,
        claim.where,
        claim.says,
        claim.experiment,
        claim_in_words(claim, names),
        paper,
        len(entry["comparisons"]),
        holding[0] if holding else "",
        (min(seeds), max(seeds)),
        judged.measured if judged.measured != NOT_ENOUGH else "",
    )


def section(claims: Sequence[ListedClaim]) -> str:
    """The list in Markdown: the counts by study, and the claims of each, by sentence."""
    parts = [_counts_table(claims)]
    for study in dict.fromkeys(claim.study for claim in claims):
        of_study = [claim for claim in claims if claim.study == study]
        parts.append(f"## {study}")
        parts += [_by_sentence(group) for group in _groups(of_study)]
    return "\n\n".join(parts)


def _groups(claims: Iterable[ListedClaim]) -> list[list[ListedClaim]]:
    """Group the claims of one sentence together, those without any last."""
    groups: dict[str, list[ListedClaim]] = {}
    for claim in claims:
        groups.setdefault(claim.quote, []).append(claim)
    return sorted(groups.values(), key=lambda group: not group[0].quote)


def _by_sentence(claims: Sequence[ListedClaim]) -> str:
    quote = claims[0].quote
    where = "; ".join(dict.fromkeys(claim.where for claim in claims))
    head = f"“{quote}” ({where})" if quote else f"{OWN} ({where})"
    return "\n".join([f"{head}\n", *(claim.line() for claim in claims)])


def _counts_table(claims: Sequence[ListedClaim]) -> str:
    verdicts = [HELD, NOT_HELD, TIE, NO_PAPER]
    by_paper = [f"paper: {verdict}" for verdict in verdicts]
    by_runs = ["runs: held", "runs: not held", "runs: undecided"]
    titles = ["study", "sentences", "claims", *by_paper, "five seeds", *by_runs]
    rows = []
    studies = list(dict.fromkeys(claim.study for claim in claims))
    for study in [*studies, "all"]:
        of_study = [claim for claim in claims if study in (claim.study, "all")]
        counts = [sum(claim.paper == verdict for claim in of_study) for verdict in verdicts]
        planned = sum(claim.seeds[0] >= ENOUGH_SEEDS for claim in of_study)
        sentences = {(claim.study, claim.quote) for claim in of_study if claim.quote}
        ours = [claim.ours for claim in of_study if claim.ours]
        decided = [ours.count(HELD), ours.count(NOT_HELD)]
        numbers = [
            len(sentences),
            len(of_study),
            *counts,
            planned,
            *decided,
            len(ours) - sum(decided),
        ]
        rows.append([study, *map(str, numbers)])
    return table(titles, rows)


def update_list(text: str, claims: Sequence[ListedClaim]) -> str:
    """Replace the list between the markers of a page's text."""
    return put_section(text, "claims", section(claims), COMMAND)


def update_contradictions(text: str, claims: Iterable[ListedClaim]) -> str:
    """Replace the list between the markers of the page of contradictions."""
    items = [claim.contradiction() for claim in claims if claim.paper == NOT_HELD]
    return put_section(text, "contradictions", "\n".join(items), COMMAND)


def main() -> None:
    """Bring both pages of claims up to date."""
    claims = [claim for study in PAPERS for claim in claims_of(study)]
    PAGE.write_text(update_list(PAGE.read_text(encoding="utf-8"), claims), encoding="utf-8")
    text = CONTRADICTIONS.read_text(encoding="utf-8")
    CONTRADICTIONS.write_text(update_contradictions(text, claims), encoding="utf-8")


if __name__ == "__main__":
    main()
