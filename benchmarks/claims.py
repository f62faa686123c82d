"""`python -m benchmarks.claims`: how often claims are held by chance, and how often rightly.

Simulates studies of every kind of claim and updates the table in docs/claims.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from cohort.claims import CLAIMS, Claim, Comparison, Matrix
from cohort.claims.decision import HELD, decide, together
from cohort.claims.verdict import contrasts_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "claims.md"
BEGIN, END = "<!-- made by `python -m benchmarks.claims` -->", "<!-- end of the simulation -->"
STUDIES, SEEDS, EFFECTS = 1000, (3, 5, 10), (1.0, 2.0, 4.0)
FAR = 20.0  # standard deviations: what is not in question
LAST_ROUND, EVERY = 300, 10  # of the runs that may reach a target


@dataclass(frozen=True)
class Case:
    """A kind of claim, and the true mean of each point: `base` at the limit of what it asks, moved
    by `towards` for each standard deviation of a difference between two runs of a seed."""

    title: str
    kind: str
    fields: dict[str, Any]
    axes: dict[str, list[Any]]
    base: Sequence[float]
    towards: Sequence[float]
    to_target: bool = False

    def claim(self) -> tuple[Claim, Comparison]:
        """The claim and its only comparison."""
        frame = {"says": "", "where": "", "experiment": "main", "metric": "update_norm"}
        made = CLAIMS[self.kind](**(frame | self.fields))
        matrix, names = Matrix(), list(self.axes)
        rows = product(*self.axes.values())
        matrix.add(
            "main",
            self.axes,
            [dict(zip(names, row, strict=True)) | {"rounds": 100} for row in rows],
        )
        (comparison,) = made.resolved(matrix)
        return made, comparison

    def values(self, effect: float, seeds: int, rng: np.random.Generator) -> np.ndarray:
        """A value for each point and seed; what the points of a seed share has the same spread as
        what they do not."""
        count = len(self.base)
        own, shared = rng.normal(size=(count, seeds)), rng.normal(size=seeds)
        means = np.array(self.base) + effect * np.array(self.towards)
        found = means[:, None] + (own + shared) / np.sqrt(2)
        if not self.to_target:
            return found
        rounds = np.ceil((250 + 50 * found) / EVERY) * EVERY
        return np.clip(rounds, EVERY, LAST_ROUND)


ALONG = {"along": "strategy"}
THREE, TWO = {"strategy": ["a", "b", "c"]}, {"strategy": ["a", "b"]}
CASES = [
    Case("`order` of three", "order", ALONG | {"values": ["a", "b", "c"], "way": "falls"}, THREE,
         (FAR, 0, 0), (0, 1, 0)),
    Case("`compare`", "compare",
         {"given": {"strategy": "a"}, "above": [{"given": {"strategy": "b"}}]}, TWO, (0, 0), (1, 0)),
    Case("`gain` beyond a margin", "gain", ALONG | {"pairs": [["a", "b"]], "margin": 1}, TWO,
         (1, 0), (1, 0)),
    Case("`gap`", "gap",
         {"along": "J", "between": ["J4", "J8"], "larger": {"strategy": "a"}, "than": {"strategy": "b"}},
         TWO | {"J": ["J4", "J8"]}, (0, 0, 0, 0), (np.sqrt(2), 0, 0, 0)),
    Case("`best` of four", "best", ALONG | {"among": ["a"], "metric": "test_loss"},
         {"strategy": ["a", "b", "c", "d"]}, (0, 0, FAR, FAR), (-1, 0, 0, 0)),
    Case("`best`: one of two among four", "best", ALONG | {"among": ["a", "b"], "metric": "test_loss"},
         {"strategy": ["a", "b", "c", "d"]}, (0, 0, 0, FAR), (-1, -1, 0, 0)),
    Case("`bound`", "bound", {"above": 0}, {"strategy": ["a"]}, (0,), (1,)),
    Case("`spread` within a width", "spread", ALONG | {"within": FAR}, TWO, (FAR, 0), (-1, 0)),
    Case("`spread` between two numbers", "spread", ALONG | {"between": [0, 2 * FAR]}, TWO,
         (0, FAR), (1, 0)),
    Case("`slower`", "slower",
         ALONG | {"leader": "a", "others": ["b"], "at": "21-30", "times": 1.8, "metric": "test_loss"},
         TWO, (0, 0, FAR, FAR, FAR, FAR, FAR, FAR, FAR), (-1, 0, 0, 0, 0, 0, 0, 0, 0)),
    Case("`order` of two by rounds to a target", "order",
         ALONG | {"values": ["a", "b"], "way": "rises", "metric": "test_loss", "at": "first 0.2"},
         TWO, (0, 0), (-1, 0), to_target=True),
]  # fmt: skip


def share_held(case: Case, effect: float, seeds: int, studies: int) -> float:
    """The share of simulated studies in which a claim is held."""
    claim, comparison = case.claim()
    rng = np.random.default_rng([seeds, round(10 * effect)])
    held = 0
    for _ in range(studies):
        contrasts = contrasts_of(claim, comparison, case.values(effect, seeds, rng))
        held += together(decide([contrasts])) == HELD
    return held / studies


def table(studies: int = STUDIES) -> str:
    """The shares as a table in Markdown."""
    heads = ["no difference" if not effect else f"{effect:g} SD" for effect in (0.0, *EFFECTS)]
    lines = [f"| claim | seeds | {' | '.join(heads)} |", "|---|---:|" + "---:|" * len(heads)]
    for case, seeds in product(CASES, SEEDS):
        shares = [share_held(case, effect, seeds, studies) for effect in (0.0, *EFFECTS)]
        numbers = " | ".join(f"{100 * share:.1f} %" for share in shares)
        lines.append(f"| {case.title} | {seeds} | {numbers} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table and put it into the page."""
    found = table()
    print(found)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{found}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
