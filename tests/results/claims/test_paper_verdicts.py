"""Where a paper's own values contradict its sentence, the study quotes it and the numbers. (The
verdicts by these values are in `tests/results/golden`.)"""

import re
from contextlib import chdir

import pytest

from cohort.pipeline.stages import claims_spec
from cohort.results.claims.judged import judged_claims
from tests.conftest import ROOT
from tools.cells import plan_all


@pytest.mark.parametrize("study", ["aml", "peco", "ucb", "fedentopt", "stratify"])
def test_what_a_paper_contradicts_is_quoted_with_its_numbers(study: str) -> None:
    """And nothing else is; the numbers are those of the evidence."""
    with chdir(ROOT):
        spec = claims_spec(plan_all(study), study) | {"metrics": {}}
        judged = judged_claims(spec)
    assert {claim.measured for claim in judged} == {"not enough runs"}
    assert [claim.claim for claim in judged] == list(spec["claims"])
    for claim in judged:
        entry = spec["claims"][claim.claim]
        assert ("against" in entry) == (claim.paper == "not held"), claim.claim
        if "against" in entry:
            assert entry["quote"] and entry["reading"]
            numbers = re.findall(r"\d+\.\d+|(?<=\bepoch )\d+", entry["against"])
            shown = re.findall(r"\d+(?:\.\d+)?", claim.paper_evidence)
            assert numbers and set(numbers) <= set(shown), claim.claim
