"""Shakespeare: speakers by hand, windows by brute force, and LEAF's published numbers."""

import os
from pathlib import Path

import numpy as np
import pytest
import yaml

from cohort.data.parsers import PARSERS
from cohort.data.parsers import text as module
from cohort.data.parsers.text import CHARACTERS, text_by_role
from cohort.data.split import Blocks, Split
from tests.conftest import ROOT
from tests.data import row_publishers as texts

TEMPEST = [
    "  PROSPERO. Now does my project   gather to a head;",
    "    My charms crack not, my spirits obey",
    "",
    "                 Enter ARIEL",  # begins with four spaces, so LEAF takes it for Prospero's
    "  Stage direction that nobody says",
    "    And time",
    "  Ariel. On the sixth hour",
    "  ARIEL. at which time, my lord,",
    "  ARIEL. You said our work should cease.",
    "  CALIBAN. Two lines only",
    "    are too few.",
    "ACT I. SCENE I.",
]
ERRORS = [
    "ACT I. SCENE 1",
    "Lost, because nobody speaks yet",
    "DUKE. Merchant of Syracuse, plead no more.",
    "I am not partial to infringe our laws;",
    "",
    "<THIS ENDS WHAT THE DUKE SAYS",
    "Lost as well",
    "AEGEON. Yet this my comfort",
    "when your words are done",
    "My woes end likewise",
    "ACT II. SCENE 1",
    "Lost, too",
]
TEXT_BY_ROLE = {
    (
        "THE_TEMPEST",
        "PROSPERO",
    ): "Now does my project gather to a head; My charms crack not, my spirits obey Enter ARIEL And time ",
    (
        "THE_TEMPEST",
        "ARIEL",
    ): "On the sixth hour at which time, my lord, You said our work should cease. ",
    (
        "THE_COMEDY_OF_ERRORS",
        "DUKE",
    ): "Merchant of Syracuse, plead no more. I am not partial to infringe our laws; ",
    (
        "THE_COMEDY_OF_ERRORS",
        "AEGEON",
    ): "Yet this my comfort when your words are done My woes end likewise ",
}
SAID = ("What is this,", "a tempest, or what else is it that I see? " * 3, "No.")


def written(content: str | bytes) -> Path:
    path = Path("raw_data.txt")
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


pytestmark = pytest.mark.usefixtures("empty_folder")


def test_who_says_what_by_hand():
    alone = ["  HAMLET. To be,", "    or not to be,", "    that is the question."]
    text = texts.gutenberg(
        {
            "THE TEMPEST": TEMPEST,
            "THE COMEDY OF ERRORS": ERRORS,
            "THE TRAGEDY OF HAMLET, PRINCE OF DENMARK": alone,
        }
    )
    assert text_by_role(written(text)) == TEXT_BY_ROLE


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (0, {"A": "a a a a ", "B": "b b b b "}),
        (1, {"A": "a a a a ", "B": "b b b "}),
        (3, {"A": "a a a "}),  # two lines of B are too few
    ],
)
def test_a_title_may_stand_seven_lines_above_and_the_plays_end_at_a_line(
    cut: int, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    lines = ["", "CYMBELINE", "by William Shakespeare", "KING JOHN", *[""] * 6]
    lines += ["by William Shakespeare", *["  A. a", "  B. b"] * 4]
    text = texts.HEAD + "\n".join(lines)
    last = len(text.splitlines()) - 2  # from 0, and without the file's first line
    monkeypatch.setattr(module, "LAST_LINE", last - cut)
    assert text_by_role(written(text)) == {("KING_JOHN", key): expected[key] for key in expected}


def decoded(*splits: Split) -> list[tuple[int, str, str]]:
    """Group, 80 characters and the next one."""
    results = []
    for split in splits:
        assert isinstance(split.values, Blocks) and split.groups is not None
        windows = np.concatenate(list(split.values.read()))
        assert windows.shape == split.values.shape == (len(split.labels), 80)
        assert windows.min() >= 1 and split.labels.min() >= 1
        texts_ = ["".join(CHARACTERS[number - 1] for number in window) for window in windows]
        results += [
            (group, text, CHARACTERS[label - 1])
            for group, text, label in zip(split.groups, texts_, split.labels, strict=True)
        ]
    return results


def test_windows_by_brute_force():
    lines = {
        title: [f"  {role}. {text}" for role in roles for text in SAID]
        for title, roles in (("THE TEMPEST", ("SON", "FATHER")), ("CYMBELINE", ("SON", "NOBODY")))
    }
    path = written(texts.gutenberg(lines))
    rows, number = texts.samples(text_by_role(path)), {"FATHER": 0, "NOBODY": 1, "SON": 2}
    train, test = PARSERS["shakespeare"]().parse(Path())
    assert len(rows) == 4 * (4 + 14 + 42 * 3 - 80) and len(test.labels) == round(len(rows) / 20)
    expected = sorted((number[role], text, following) for (_, role), text, following in rows)
    assert sorted(decoded(train, test)) == expected
    assert decoded(*PARSERS["shakespeare"]().parse(Path())) == decoded(train, test)
    chosen = [text for _, text, _ in decoded(test)]
    assert chosen != [text for _, text, _ in decoded(train, test)][: len(chosen)]


def real() -> Path:
    result = sorted(
        Path(os.environ.get("COHORT_DATA_MIRROR") or "/nonexistent").rglob("raw_data.txt")
    )
    if not result:
        pytest.skip("COHORT_DATA_MIRROR names no folder with raw_data.txt")
    return result[0]


def test_the_real_text_has_the_published_numbers():
    """LEAF's page gives users, samples, their mean and deviation."""
    info = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())["shakespeare"]
    users = {user: text for user, text in text_by_role(real()).items() if len(text) > 80}
    sizes = np.array([len(text) - 80 for text in users.values()])
    assert (len(users), sizes.sum()) == (1129, 4_226_158)
    assert (round(sizes.mean(), 2), round(sizes.std(), 2)) == (3743.28, 6212.26)
    assert (
        sorted(set("".join(users.values()))) == list(CHARACTERS)
        and len(CHARACTERS) == info["classes"] - 1 == 79
    )
    assert len({role for _, role in users}) == info["groups"] == 810
    assert len({play for play, _ in users}) == 36
    assert (info["train"], info["test"]) == (3_803_542 + 211_308, 211_308)
