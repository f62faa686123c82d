"""`python -m tools.claims_list`: make docs/claims-list.md, every claim with its sentence, and
docs/contradictions.md, those that their own paper contradicts.

It needs no runs: what a paper says of itself comes from its own values.
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
from cohort.results.claims.decision import NOT_HELD
from cohort.results.claims.judge import judged_claims
from cohort.results.claims.judged import JudgedClaim
from cohort.results.intervals import ENOUGH_SEEDS
from cohort.results.names import Names
from tools.claim_words import claim_in_words

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
        )

    def contradiction(self) -> str:
        """The claim as a Markdown item of those that their own paper contradicts."""
        return (
            f"- **`{self.study}.{self.name}`**, {self.where}: “{self.quote}”\n"
            f"  *Numbers:* {self.against}\n  *Reading:* {self.reading}"
        )


def claims_of(study: str) -> list[ListedClaim]:
    """Judge the claims of a study by its paper's values; return them in the study's order."""
    with chdir(ROOT):
        spec = claims_spec(load({"studies": [study]}), study)
        verdicts = judged_claims(spec | {"metrics": {}})
    names = Names(orders={}, titles=dict(spec["titles"]))
    return [_listed(study, spec["claims"][verdict.claim], verdict, names) for verdict in verdicts]


def _listed(study: str, entry: dict[str, Any], verdict: JudgedClaim, names: Names) -> ListedClaim:
    claim = CLAIMS[entry["kind"]].from_spec(entry)
    seeds = [
        point["seeds"] for comparison in entry["comparisons"] for point in comparison["points"]
    ]
    word, evidence = verdict.paper, verdict.paper_evidence
    holding = re.search(r"\b\d+ of \d+(?= hold: )", evidence) if word != "no value" else None
    return ListedClaim(
        study,
        verdict.claim,
        claim.quote,
        claim.against,
        claim.reading,
        claim.where,
        claim.says,
        claim.experiment,
        claim_in_words(claim, names),
        word,
        len(entry["comparisons"]),
        holding[0] if holding else "",
        (min(seeds), max(seeds)),
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
    titles = ["study", "sentences", "claims", "held", "not held", "tie", "no value", "five seeds"]
    rows = []
    studies = list(dict.fromkeys(claim.study for claim in claims))
    for study in [*studies, "all"]:
        of_study = [claim for claim in claims if study in (claim.study, "all")]
        words = [sum(claim.paper == word for claim in of_study) for word in titles[3:7]]
        planned = sum(claim.seeds[0] >= ENOUGH_SEEDS for claim in of_study)
        sentences = {(claim.study, claim.quote) for claim in of_study if claim.quote}
        rows.append([study, *map(str, [len(sentences), len(of_study), *words, planned])])
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
