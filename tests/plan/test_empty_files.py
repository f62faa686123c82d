"""Files, keys and lists that are empty or too short: one sentence each."""

from __future__ import annotations

from pathlib import Path

import pytest

from cohort.commands.check import find_claims
from cohort.core.errors import UserError
from cohort.plan import load
from cohort.plan.schema_validation import Strict, explain_error


def test_empty_scales(project: Path):
    Path("config/scales.yaml").write_text("")
    with pytest.raises(UserError, match=r"config/scales.yaml: the file is None, but must be a"):
        load()


@pytest.mark.parametrize("text", ["", "title: x\nclaims:\n", "- a"])
def test_a_claim_is_looked_for_beside_an_invalid_study(project: Path, text: str):
    Path("config/studies/mine.yaml").write_text(text)
    with pytest.raises(UserError, match="there is no study or claim 'nothing'"):
        find_claims("nothing")


def test_a_list_that_is_too_short():
    (error,) = Strict({"minItems": 2}).iter_errors([3])
    assert explain_error(error) == "the file holds 1, but must hold at least 2"
