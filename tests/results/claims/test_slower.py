"""Claims about how many rounds others need: each verdict worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cohort.core.errors import UserError
from tests.results.claims.samples import Cell, claim, matrix, single, verdict

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
        ((0.1, 0.6, 0.3, 0.4), 1.0, "not held", "reached by round 4, 1 times as late"),
        ((0.1, 0.4, 0.5, 0.7), 1.0, "held", "reached by round 6, 1.5 times as late"),
        ((0.9, 0.1, 0.1, 0.1), 2.0, "held", "never reached"),  # what was before does not count
    ],
)
def test_when_others_reach_it(
    tmp_path: Path, values: tuple[float, ...], times: float, word: str, evidence: str
) -> None:
    cells = [PECO, run("random", *values)]
    result = single(claim("slower", **FIELDS, times=times), tmp_path, main=cells)
    mark = "" if word == "held" else "✗ "
    assert (result.verdict, result.evidence) == (
        word,
        f"{mark}50.00 (peco) by round 4, {evidence}",
    )


def test_each_other_in_each_setting(tmp_path: Path) -> None:
    cells = [
        *(PECO, run("random", 0.1, 0.2, 0.3, 0.5), run("loss", 0.1, 0.5, 0.5, 0.5)),
        *(run("peco", 0, 0.2, 0.3, 0.4, partition="x"), run("random", 0, 0, 0, 0, partition="x")),
    ]
    made = claim("slower", **FIELDS | {"others": ["random", "loss"]}, times=1.5)
    result = single(made, tmp_path, main=cells)
    assert result.verdict == "not held"
    assert result.evidence.startswith("2 of 3 hold: iid, random: 50.00 (peco) by round 4, reached")
    assert "✗ iid, loss: 50.00 (peco) by round 4, reached by round 4" in result.evidence


def test_losses_fall_to_it(tmp_path: Path) -> None:
    made = claim("slower", **FIELDS, times=1.5, metric="test_loss")
    cells = [run("peco", 3, 2, 1, 1), run("random", 4, 3, 2, 1)]
    assert "reached by round 6" in single(made, tmp_path, main=cells).evidence


def test_a_run_that_is_missing(tmp_path: Path) -> None:
    missing = (run("random", 0, 0, 0, 0)[0], "missing", {})
    result = verdict(claim("slower", **FIELDS), tmp_path, main=[PECO, missing])
    assert result.verdict == "not enough runs"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"at": "last"}, "at is 'last', but must be a range of rounds such as 21-30, or max"),
        ({"at": 30}, "at is '30', but must be a range of rounds such as 21-30, or max"),
        ({"at": "max", "metric": "test_loss"}, "low values of test_loss are better"),
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


LEADER = run("peco", 0.1, 0.6, 0.5, 0.5)  # at its best in round 3
BEST = FIELDS | {"at": "max"}


@pytest.mark.parametrize(
    ("values", "times", "word", "evidence"),
    [
        ((0.1, 0.2, 0.6, 0.7), 1.0, "held", "reached by round 5, 1.7 times as late"),
        ((0.1, 0.2, 0.6, 0.7), 2.0, "not held", "reached by round 5, 1.7 times as late"),
        ((0.1, 0.6, 0.6, 0.7), 1.0, "tie", "reached by round 3, 1 times as late"),
        ((0.7, 0.2, 0.2, 0.2), 1.0, "not held", "reached by round 1, 0.33 times as late"),
        ((0.59, 0.2, 0.2, 0.2), 1.0, "held", "never reached"),  # though it is at its best before
    ],
)
def test_when_others_reach_the_best_value_of_the_leader(
    tmp_path: Path, values: tuple[float, ...], times: float, word: str, evidence: str
) -> None:
    cells = [LEADER, run("random", *values)]
    result = single(claim("slower", **BEST, times=times), tmp_path, main=cells)
    mark = {"held": "", "tie": "= "}.get(word, "✗ ")
    assert (result.verdict, result.evidence) == (word, f"{mark}best in round 3, {evidence}")


def test_each_seed_has_a_goal_of_its_own(tmp_path: Path) -> None:
    """Leaders of four rounds are at their best in rounds 3, 2 and 4. The other reaches 0.6 in round
    7, never 0.7, and 0.4 in round 8: it needs 4, 7 and 4 rounds more, the second as if it had got
    there in round 9. Their mean is 5, the half-width 1.732 / sqrt(3) * 2.920 = 2.92."""
    leaders = [(0.1, 0.5, 0.6, 0.6), (0.1, 0.7, 0.6, 0.6), (0.1, 0.2, 0.3, 0.4)]
    others = [(7, 0.6), (8, 0.6), (8, 0.4)]
    cells: list[Cell] = [
        ({"strategy": "peco", "seed": seed}, "done", dict(enumerate(values, start=1)))
        for seed, values in enumerate(leaders)
    ]
    cells += [
        ({"strategy": "random", "seed": seed}, "done", {1: 0.1, round: value, 8: value})
        for seed, (round, value) in enumerate(others)
    ]
    result = verdict(claim("slower", **BEST), tmp_path, main=cells)
    assert result.verdict == "leans towards held"
    assert (
        "[+5, +2.1 to +7.9, above 0 in 3 of 3 seeds], 1 of 3 runs do not reach it (random), "
        "means restricted to 9 rounds"
    ) in result.evidence


def test_there_is_no_goal_before_the_leader_has_run(tmp_path: Path) -> None:
    missing = (LEADER[0], "missing", {})
    result = verdict(claim("slower", **BEST), tmp_path, main=[missing, run("random", 0, 0, 0, 0)])
    assert result.verdict == "not enough runs" and "never" not in result.evidence


def test_the_goal_is_set_by_runs_that_differ_in_nothing_else() -> None:
    """A partition that goes with the strategy would leave the other without a leader."""
    cells = matrix(main=[LEADER, run("random", 0, 0, 0, 0, partition="x")])
    with pytest.raises(UserError, match="differ in strategy only, but partition is iid and x"):
        claim("slower", **BEST).comparisons(cells)
