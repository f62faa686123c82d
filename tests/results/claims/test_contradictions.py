"""Where a paper's own numbers contradict its sentence, the study quotes both, and only there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from cohort.pipeline.specs import claims_spec
from cohort.plan import load
from cohort.results.claims.judge import judged_claims

ROOT = Path(__file__).resolve().parents[3]
STUDIES = sorted(file.stem for file in (ROOT / "config/studies").glob("*.yaml"))


def not_held(study: str) -> dict[str, str]:
    """The evidence on each claim of a study that its paper's own values do not bear out."""
    plan = load({"studies": [study]})
    if not plan.study(study).claims:
        return {}
    claims = judged_claims(claims_spec(plan, study) | {"metrics": {}})
    return {claim.claim: claim.paper_evidence for claim in claims if claim.paper == "not held"}


def decimals(text: str) -> set[str]:
    return set(re.findall(r"\d+\.\d+", text))


def epochs(text: str) -> set[str]:
    return set(re.findall(r"\bepoch (\d+)", text))


@pytest.mark.parametrize("study", STUDIES)
def test_numbers_against_a_sentence_are_those_of_the_paper(
    study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    contradicted = not_held(study)
    text = yaml.safe_load((ROOT / f"config/studies/{study}.yaml").read_text())
    claims = text.get("claims", {})
    assert list(contradicted) == [name for name, claim in claims.items() if "against" in claim]
    for name, evidence in contradicted.items():
        assert claims[name]["quote"] and claims[name]["reading"]
        numbers = claims[name]["against"]
        assert decimals(numbers) and decimals(numbers) <= decimals(evidence), name
        assert epochs(numbers) <= set(re.findall(r"\b\d+\b", evidence)), name
