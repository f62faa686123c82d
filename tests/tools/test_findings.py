"""Every finding of a study is what its released runs show."""

from __future__ import annotations

from typing import Any

import pytest

from cohort.plan.yaml_files import read_yaml
from tests.conftest import ROOT
from tools.findings import headlined, problems

STUDIES = {file.stem: read_yaml(file) for file in (ROOT / "config/studies").glob("*.yaml")}
FINDINGS = {name: study["findings"] for name, study in STUDIES.items() if "findings" in study}

TEXT = "UCB, with W1, leads in 81 % of seeds on CIFAR-10 with Dir(0.1): by 1.2 points after 1,200 rounds."
AHEAD, LEAD = "board, ucb, ahead_of_fedavg", "board, ucb, 1200, minus_fedavg"
RESTS = {AHEAD: 81, LEAD: "-1.15 [-1.75, -0.56]", "held, verdict": "not held"}
SHOWN = {AHEAD: "81 [73, 88]", LEAD: "-1.15 [-1.75, -0.56]", "held, verdict": "not held"}


@pytest.mark.parametrize(
    ("text", "rests_on", "problem"),
    [
        (TEXT, {}, ""),
        (TEXT, {AHEAD: "81 [73, 88]"}, ""),
        (TEXT.replace("81", "82"), {}, "no value gives the 82 of"),
        (TEXT.replace("1.2", "1.0"), {}, "no value gives the 1.0 of"),
        (TEXT.replace("1.2", "1.16"), {}, "no value gives the 1.16 of"),
        (TEXT + " In 3 settings.", {}, "no value gives the 3 of"),
        (TEXT, {AHEAD: 81.5}, f"{AHEAD} is 81 [73, 88], not 81.5"),
        (TEXT, {AHEAD: "81 [73, 89]"}, f"{AHEAD} is 81 [73, 88], not 81 [73, 89]"),
        (TEXT, {LEAD: "1.15"}, f"{LEAD} is {RESTS[LEAD]}, not 1.15"),
        (TEXT, {"held, verdict": "held"}, "held, verdict is not held, not held"),
    ],
)
def test_a_changed_number_is_found(text: str, rests_on: dict[str, Any], problem: str) -> None:
    sentences = list(problems({"text": text, "rests_on": RESTS | rests_on}, SHOWN))
    assert len(sentences) == bool(problem)
    assert all(sentence.startswith(problem) for sentence in sentences)


@pytest.mark.parametrize("study", FINDINGS)
def test_findings_have_short_headlines_and_only_numbers_that_they_rest_on(study: str) -> None:
    for finding in FINDINGS[study]:
        assert headlined(finding["text"]).index(".**") < 110
        stated = {reference: str(value) for reference, value in finding["rests_on"].items()}
        assert list(problems(finding, stated)) == []
