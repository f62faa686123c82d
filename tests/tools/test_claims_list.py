"""docs/claims-list.md has every claim under its sentence, as its command makes it."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.conftest import ROOT
from tools import claims_list

TEXT = claims_list.PAGE.read_text(encoding="utf-8")
PARTS = dict(zip(*[iter(re.split(r"^## (\w+)$", TEXT, flags=re.MULTILINE)[1:])] * 2, strict=True))
OWN_QUESTIONS = {
    "aml": [],
    "peco": [],
    "ucb": [],
    "fedentopt": [],
    "stratify": [
        "single_reaches_98_before_sfl",
        "batch_ahead_at_constant_rate",
        "fedtan_slower_at_constant_rate",
    ],
}


@pytest.mark.slow
def test_both_lists_are_current() -> None:
    claims = [claim for study in claims_list.PAPERS for claim in claims_list.claims_of(study)]
    assert claims_list.update_list(TEXT, claims) == TEXT, f"run `{claims_list.COMMAND}`"
    contradicted = claims_list.CONTRADICTIONS.read_text(encoding="utf-8")
    assert claims_list.update_contradictions(contradicted, claims) == contradicted


@pytest.mark.parametrize("study", OWN_QUESTIONS)
def test_each_claim_stands_once_under_its_sentence(study: str) -> None:
    """Read again from the study's YAML and the page's text."""
    claims = yaml.safe_load((ROOT / f"config/studies/{study}.yaml").read_text())["claims"]
    under: dict[str, str] = {}
    quote = ""
    for line in PARTS[study].splitlines():
        if begun := re.match(r"“(.*)” \(", line):
            quote = begun[1]
        elif line.startswith(claims_list.OWN):
            quote = ""
        elif named := re.match(r"- `(\w+)`: (.*)", line):
            assert named[1] not in under
            assert quote or named[2].startswith(claims[named[1]]["says"])
            under[named[1]] = quote
    assert under == {name: claim.get("quote", "") for name, claim in claims.items()}
    assert [name for name in claims if not under[name]] == OWN_QUESTIONS[study]


@pytest.mark.parametrize(
    ("study", "name", "line"),
    [
        ("aml", "onecycle_best", "*Held; 1 seed.*"),
        ("aml", "diversity_moderate_loss", "*Not held (3 of 4); 5 seeds.*"),
        ("ucb", "faster_in_round_10", "*Not held; 100 seeds.* **Our runs: undecided.**"),
        ("peco", "twice_the_accuracy", "*Held; 5 seeds.* **Our runs: not held.**"),
        ("peco", "first_at_every_ratio", "*No value; 5 seeds.*"),
        ("peco", "loss_gap_larger_with_resnet", "*Tie (5 of 6); 1 to 5 seeds.*"),
        ("fedentopt", "combining_helps", "*Not held (52 of 60); 3 to 5 seeds.*"),
        ("stratify", "group_norm_beats_simple", "*Held; 1 to 5 seeds.*"),
    ],
)
def test_what_the_paper_and_our_runs_say_and_how_many_seeds_are_planned(
    study: str, name: str, line: str
) -> None:
    entry = PARTS[study].split(f"- `{name}`: ")[1].partition("\n")[0]
    assert entry.endswith(line)


def test_the_counts_are_those_of_the_entries() -> None:
    head = TEXT.split("\n## ")[0]
    results = {cells[0]: list(map(int, cells[1:])) for cells in _numbers(head)}
    for study, part in PARTS.items():
        pattern = (
            r" \*(Held|Not held|Tie|No value)[^;*]*; (\d+)[^*]*\*(?: \*\*Our runs: (.*)\.\*\*)?\n"
        )
        entries = re.findall(pattern, f"{part}\n")
        words = [word.lower() for word, *_ in entries]
        low = [int(seeds) for _, seeds, _ in entries]
        ours = [verdict for *_, verdict in entries if verdict]
        decided = [ours.count("held"), ours.count("not held")]
        assert results[study] == [
            len(re.findall("^“", part, re.MULTILINE)),
            len(words),
            *(words.count(word) for word in ("held", "not held", "tie", "no value")),
            sum(seeds >= 5 for seeds in low),
            *decided,
            len(ours) - sum(decided),
        ]
    assert results["all"] == [sum(column) for column in zip(*map(results.get, PARTS), strict=True)]


def _numbers(head: str) -> list[list[str]]:
    rows = [line.strip("| ").split("|") for line in head.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows if row[1].strip().isdigit()]
