"""docs/contradictions.md lists the claims that their own paper's numbers contradict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cohort.pipeline.specs import claims_spec
from cohort.plan import load
from cohort.results.claims.judge import judged

ROOT = Path(__file__).resolve().parents[3]
ENTRY = re.compile(
    r"^- \*\*`(\S+)`\*\*, (.*?)\*Numbers:\*(.*?)\*Reading:\*", re.DOTALL | re.MULTILINE
)
STUDIES = sorted(file.stem for file in (ROOT / "config/studies").glob("*.yaml"))


def not_held(study: str) -> dict[str, str]:
    """The evidence on each claim of a study that its paper's own values do not bear out."""
    plan = load({"studies": [study]})
    if not plan.study(study).claims:
        return {}
    claims = judged(claims_spec(plan, study) | {"metrics": {}})
    return {
        f"{study}.{claim.claim}": claim.paper_evidence
        for claim in claims
        if claim.paper == "not held"
    }


def decimals(text: str) -> set[str]:
    return set(re.findall(r"\d+\.\d+", text))


def epochs(text: str) -> set[str]:
    return set(re.findall(r"\bepoch (\d+)", text))


def test_the_list_is_what_the_papers_values_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    results = {claim: text for study in STUDIES for claim, text in not_held(study).items()}
    listed = ENTRY.findall((ROOT / "docs/contradictions.md").read_text())
    assert [claim for claim, _, _ in listed] == list(results)
    for claim, sentence, numbers in listed:
        assert sentence.count('"') >= 2, f"{claim} quotes no sentence"
        assert decimals(numbers) and decimals(numbers) <= decimals(results[claim]), claim
        assert epochs(numbers) <= set(re.findall(r"\b\d+\b", results[claim])), claim
