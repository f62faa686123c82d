"""`python -m benchmarks.claims`: how often verdicts on claims are wrong, and how often right.

Simulates studies with several kinds of noise, and every kind of claim, and updates the tables in
docs/claims.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from cohort.results.claims import CLAIMS, Claim, Comparison, Matrix
from cohort.results.claims.decision import (
    HELD,
    LEANS_HELD,
    LEANS_NOT_HELD,
    NOT_HELD,
    decide,
    overall_verdict,
)
from cohort.results.claims.verdict import contrasts_of
from cohort.results.intervals import Sample
from cohort.results.signed_ranks import SignedRanks

PAGE = Path(__file__).resolve().parents[1] / "docs" / "claims.md"
BEGIN, END = "<!-- made by `python -m benchmarks.claims` -->", "<!-- end of the simulation -->"
STUDIES, EFFECTS = 1000, (0.0, 2.0, 4.0)
SEEDS, TWICE = (3, 5, 6, 10), (5, 10)
COMPARISONS, POWER = (1, 4, 16), 4.0
SETTINGS = (6, 12, 24)
RATES = ("false held", "false not held", "held at 4 SD", "not held at -4 SD")
STUCK = 40.0  # standard deviations: how far chance level is from what else a run reaches
FAR = 20.0  # standard deviations: what is not in question
LAST_ROUND, EVERY = 300, 10  # of the runs that may reach a target


Noise = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
"""Differences in units of the usual standard deviation, whose median is 0; if any, their long tail
is above 0, so that it pulls the mean towards a false verdict."""


def noise_with_stuck_runs(share: float) -> Noise:
    """Make a normal noise in which this share of the other strategy's runs is at chance level."""
    median = ndtri(0.5 / (1 - share))
    return lambda rng, shape: (
        rng.normal(size=shape) + STUCK * (rng.random(size=shape) < share) - median
    )


NOISES: dict[str, Noise] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed (exponential)": lambda rng, shape: rng.exponential(size=shape) - np.log(2),
    "heavy-tailed (t, 2 degrees of freedom)": lambda rng, shape: rng.standard_t(2, size=shape),
    "deviation of each seed its own (log-normal)": lambda rng, shape: (
        rng.normal(size=shape) * np.exp(rng.normal(size=shape))
    ),
    "one run in five stuck at chance level": noise_with_stuck_runs(0.2),
    "one run in ten diverged": noise_with_stuck_runs(0.1),
}


def verdicts(differences: np.ndarray) -> list[str]:
    """Judge simulated studies: a verdict on each, of differences by study, comparison and seed."""
    n = differences.shape[-1]
    statistics = zip(
        differences.mean(-1).tolist(),
        differences.std(-1, ddof=1).tolist(),
        (differences > 0).sum(-1).tolist(),
        (differences < 0).sum(-1).tolist(),
        strict=True,
    )
    return [
        overall_verdict(decide([[[Sample(n, *numbers)]] for numbers in zip(*study, strict=True)]))
        for study in statistics
    ]


def share_of(words: Sequence[str], looks: Sequence[np.ndarray]) -> float:
    """The share of studies whose first clear verdict, over several looks at growing numbers of
    seeds, is one of `words`."""
    last = [""] * len(looks[0])
    for differences in looks:
        new = verdicts(differences)
        last = [
            old if old in (HELD, NOT_HELD) else word for old, word in zip(last, new, strict=True)
        ]
    return sum(word in words for word in last) / len(last)


def verdict_rates(
    noise: Noise, seeds: Sequence[int], count: int, studies: int
) -> tuple[float, ...]:
    """The shares of false held, false not held, right held and right not held of claims of `count`
    comparisons, looked at with each of these numbers of seeds in turn."""
    rng = np.random.default_rng([*seeds, count])
    shape = (studies, count, seeds[-1])
    beyond_doubt = np.array([0.0, *[FAR] * (count - 1)])[:, None]
    one_behind = np.array([-POWER, *[FAR] * (count - 1)])[:, None]
    held, not_held = (HELD, LEANS_HELD), (NOT_HELD, LEANS_NOT_HELD)
    cases = [
        (held, noise(rng, shape) + beyond_doubt),
        (not_held, -noise(rng, shape)),
        (held, noise(rng, shape) + POWER),
        (not_held, noise(rng, shape) + one_behind),
    ]
    return tuple(
        share_of(words, [differences[..., :n] for n in seeds]) for words, differences in cases
    )


def table_of_noises(studies: int = STUDIES) -> str:
    """The rates by noise, number of seeds and number of comparisons as a table in Markdown."""
    lines = [f"| noise | seeds | {' | '.join(RATES)} |", "|---|---:|" + "---:|" * len(RATES)]
    for (name, noise), seeds in product(NOISES.items(), [*((n,) for n in SEEDS), TWICE]):
        by_count = [verdict_rates(noise, seeds, count, studies) for count in COMPARISONS]
        texts = [
            " / ".join(f"{100 * rate:.1f}" for rate in kind) for kind in zip(*by_count, strict=True)
        ]
        lines.append(f"| {name} | {', then '.join(map(str, seeds))} | {' | '.join(texts)} |")
    return "\n".join(lines)


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
        (comparison,) = made.planned_comparisons(matrix)
        return made, comparison

    def values(self, effect: float, seeds: int, rng: np.random.Generator) -> np.ndarray:
        """Draw a value for each point and seed; half of its variance is shared by the points of a
        seed."""
        count = len(self.base)
        own, shared = rng.normal(size=(count, seeds)), rng.normal(size=seeds)
        means = np.array(self.base) + effect * np.array(self.towards)
        differences = means[:, None] + (own + shared) / np.sqrt(2)
        if not self.to_target:
            return differences
        rounds = np.ceil((250 + 50 * differences) / EVERY) * EVERY
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
    Case("`average` of six settings", "average", ALONG | {"pairs": [["a", "b"]]},
         TWO | {"partition": list("123456")}, (0,) * 12, (1, 0) * 6),
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
        held += overall_verdict(decide([contrasts])) == HELD
    return held / studies


def table_of_kinds(studies: int = STUDIES // 2) -> str:
    """The shares of claims held by kind as a table in Markdown."""
    heads = ["no difference" if not effect else f"{effect:g} SD" for effect in EFFECTS]
    lines = [f"| claim | seeds | {' | '.join(heads)} |", "|---|---:|" + "---:|" * len(heads)]
    for case, seeds in product(CASES, TWICE):
        shares = [share_held(case, effect, seeds, studies) for effect in EFFECTS]
        numbers = " | ".join(f"{100 * share:.1f} %" for share in shares)
        lines.append(f"| {case.title} | {seeds} | {numbers} |")
    return "\n".join(lines)


def table_of_settings(studies: int = STUDIES) -> str:
    """The shares of false held on average over settings whose differences have a median of 0."""
    lines = [f"| differences | {' | '.join(f'{count} settings' for count in SETTINGS)} |"]
    lines.append("|---|" + "---:|" * len(SETTINGS))
    for name, noise in NOISES.items():
        shares = [share_ahead(noise, settings, studies) for settings in SETTINGS]
        lines.append(f"| {name} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |")
    return "\n".join(lines)


def share_ahead(noise: Noise, settings: int, studies: int) -> float:
    """The share of studies that hold one strategy to be ahead on average over so many settings."""
    rng = np.random.default_rng(settings)
    samples = map(SignedRanks.of, noise(rng, (studies, settings)))
    return sum(decide([[[sample]]]) == [HELD] for sample in samples) / studies


def main() -> None:
    """Print the tables of rates and put them into the page."""
    tables = "\n\n".join([table_of_noises(), table_of_kinds(), table_of_settings()])
    print(tables)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{tables}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
