"""Claims about parts of a run: bucket by bucket, and one part against another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cohort.core.errors import UserError
from tests.results.claims.samples import Cell, claim, matrix, single

BEST: dict[str, Any] = {"along": "strategy", "among": ["peco"], "at": "1-4", "buckets": 2}


def run(strategy: str, *values: float, **labels: Any) -> Cell:
    """A run with these accuracies in rounds 1, 2, 3, ..."""
    result = {"strategy": strategy, "rounds": len(values), "seed": 0} | labels
    return result, "done", dict(enumerate(values, start=1))


@pytest.mark.parametrize(
    ("other", "word", "evidence"),
    [
        (
            (0.3, 0.3, 0.4, 0.4),
            "held",
            "2 of 2 hold: rounds 1-2: 40.00 (peco); 30.00 (b); rounds 3-4: 50.00 (peco); 40.00 (b)",
        ),
        (  # behind as a mean over all rounds, ahead in the first bucket
            (0.5, 0.4, 0.0, 0.0),
            "not held",
            "1 of 2 hold: ✗ rounds 1-2: 45.00 (b); 40.00 (peco); "
            "rounds 3-4: 50.00 (peco); 0.00 (b)",
        ),
    ],
)
def test_each_bucket_is_judged_on_its_own(
    tmp_path: Path, other: tuple[float, ...], word: str, evidence: str
):
    cells = [run("peco", 0.3, 0.5, 0.4, 0.6), run("b", *other)]
    result = single(claim("best", **BEST), tmp_path, main=cells)
    assert (result.verdict, result.evidence) == (word, evidence)


@pytest.mark.parametrize("at", ["last", 4, "1-5", "2-4"])
def test_buckets_need_a_range_that_they_fill(at: int | str):
    cells = [run("peco", 0.3, 0.5, 0.4, 0.6), run("b", 0.1, 0.1, 0.1, 0.1)]
    with pytest.raises(UserError, match=f"^at is '{at}', but must be a range of rounds that buck"):
        claim("best", **(BEST | {"at": at})).planned_comparisons(matrix(main=cells))


def test_rounds_to_a_goal_have_no_buckets():
    made = claim("slower", along="strategy", leader="a", others=["b"], at="1-2", buckets=2)
    with pytest.raises(UserError, match="buckets are for other kinds"):
        made.check()


@pytest.mark.parametrize(("late", "word", "sign"), [(0.1, "held", ">"), (0.45, "not held", "<")])
def test_a_gap_may_be_larger_in_some_rounds(tmp_path: Path, late: float, word: str, sign: str):
    """The lead is 10 points in rounds 1 and 2, and 40 or 5 in rounds 3 and 4."""
    cells = [run("peco", 0.3, 0.5, 0.4, 0.6), run("b", 0.2, 0.4, late, late)]
    made = claim(
        "gap",
        along="strategy",
        between=["peco", "b"],
        larger={"at": "3-4"},
        than={"at": "1-2"},
        at="last",
    )
    result = single(made, tmp_path, main=cells)
    assert result.verdict == word
    lead = f"{50 - 100 * late:.2f} (main, 3-4) {sign} 40.00 - 30.00 = 10.00 (main, 1-2)"
    assert lead in result.evidence
