"""Claims about how many rounds others need: each verdict worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cohort.core.errors import UserError
from tests.claims.samples import Cell, claim, matrix, single, verdict

FIELDS = {"along": "strategy", "leader": "peco", "others": ["random"], "at": "3-4"}


def run(strategy: str, *values: float, partition: str = "iid") -> Cell:
    """A run of eight rounds, two of them with each value."""
    labels = {"partition": partition, "strategy": strategy, "seed": 0, "rounds": 8}
    return labels, "done", {round: values[(round - 1) // 2] for round in range(1, 9)}


PECO = run("peco", 0.1, 0.5, 0.6, 0.7)


@pytest.mark.parametrize(
    ("values", "times", "word", "evidence"),
    [
        ((0.1, 0.2, 0.4, 0.5), 2.0, "held", "reached by round 8, 2 times as late"),
        ((0.1, 0.2, 0.5, 0.7), 1.5, "held", "reached by round 6, 1.5 times as late"),
        ((0.1, 0.2, 0.5, 0.7), 1.6, "not held", "reached by round 6, 1.5 times as late"),
        ((0.1, 0.2, 0.3, 0.4), 9.0, "held", "never reached"),
        ((0.1, 0.6, 0.3, 0.4), 1.1, "not held", "reached by round 4, 1 times as late"),
        ((0.9, 0.1, 0.1, 0.1), 2.0, "held", "never reached"),  # what was before does not count
    ],
)
def test_when_others_reach_it(
    tmp_path: Path, values: tuple[float, ...], times: float, word: str, evidence: str
) -> None:
    cells = [PECO, run("random", *values)]
    found = single(claim("slower", **FIELDS, times=times), tmp_path, main=cells)
    mark = "" if word == "held" else "✗ "
    assert (found.word, found.evidence) == (
        word,
        f"{mark}50.00 (peco) by round 4, {evidence}",
    )


def test_each_other_in_each_setting(tmp_path: Path) -> None:
    cells = [
        *(PECO, run("random", 0.1, 0.2, 0.3, 0.5), run("loss", 0.1, 0.5, 0.5, 0.5)),
        *(run("peco", 0, 0.2, 0.3, 0.4, partition="x"), run("random", 0, 0, 0, 0, partition="x")),
    ]
    made = claim("slower", **FIELDS | {"others": ["random", "loss"]}, times=1.5)
    found = single(made, tmp_path, main=cells)
    assert found.word == "not held"
    assert found.evidence.startswith("2 of 3 hold: iid, random: 50.00 (peco) by round 4, reached")
    assert "✗ iid, loss: 50.00 (peco) by round 4, reached by round 4" in found.evidence


def test_losses_fall_to_it(tmp_path: Path) -> None:
    made = claim("slower", **FIELDS, times=1.5, metric="test_loss")
    cells = [run("peco", 3, 2, 1, 1), run("random", 4, 3, 2, 1)]
    assert "reached by round 6" in single(made, tmp_path, main=cells).evidence


def test_a_run_that_is_missing(tmp_path: Path) -> None:
    missing = (run("random", 0, 0, 0, 0)[0], "missing", {})
    found = verdict(claim("slower", **FIELDS), tmp_path, main=[PECO, missing])
    assert found.word == "not enough runs"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"at": "last"}, "at is 'last', but must be a range of rounds such as 21-30"),
        ({"at": 30}, "at is '30', but must be a range of rounds such as 21-30"),
        ({"metric": "update_norm"}, "neither high nor low is better"),
    ],
)
def test_mistakes(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        claim("slower", **FIELDS | fields).check()


def test_values_that_are_not_there() -> None:
    cells = matrix(main=[PECO, run("random", 0, 0, 0, 0)])
    with pytest.raises(UserError, match="leader or others names strategy uniform"):
        claim("slower", **FIELDS | {"others": ["uniform"]}).comparisons(cells)
