"""Verdicts by the papers' own values, against an oracle that reads the files and decides each claim
in plain Python; what is compared is taken from the plan."""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import chdir
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cohort.pipeline.stages import claims_spec
from cohort.results.claims.judged import judged_claims
from cohort.results.names import METRICS
from tests.conftest import ROOT
from tools.cells import plan_all

SOURCES = ("printed", "authors' log", "derived", "approximate")
FIXED = {"item", "source", "doubtful", "other", "metric", "at", "round", "value", "sd", "runs"}
NAN = math.nan
Row = Mapping[str, str]


def rows_of(study: str) -> list[list[Row]]:
    """The rows of a paper's single values, and those of its curves."""
    files = [ROOT / f"resources/paper_values/{study}{end}.csv" for end in ("", "_curves")]
    return [list(csv.DictReader(file.open())) if file.exists() else [] for file in files]


def fitting(rows: Sequence[Row], items: str, metric: str, labels: Row) -> list[Row]:
    """The rows of these items whose labels contradict none of a point's, of the best source."""
    fits = []
    for row in rows:
        stated = {label: text for label, text in row.items() if text and label not in FIXED}
        is_asked = row["item"] in items.split(", ")
        is_free = all(labels.get(label, "–") in ("–", text) for label, text in stated.items())
        if row["metric"] == metric and is_asked and is_free:
            fits.append(row)
    best = min((SOURCES.index(row["source"]) for row in fits), default=0)
    return [row for row in fits if row["source"] == SOURCES[best]]


def on_curve(values: Mapping[int, float], at: str) -> float:
    """The value of a curve of an accuracy at a round, a range of rounds, or a word."""
    end = max(values)
    if at.startswith("first "):
        reached = (round for round, value in sorted(values.items()) if value >= float(at[6:]))
        return next(reached, math.inf)
    if at in ("max", "min", "mean"):
        return {"max": max, "min": min, "mean": np.mean}[at](list(values.values()))
    rounds = {"last": f"{end}-{end}", "last-10": f"{end - 9}-{end}"}.get(at, at)
    first, _, last = rounds.partition("-")
    if not last:
        return values[max(round for round in values if round <= int(first))]
    return float(np.mean([values[round] for round in values if int(first) <= round <= int(last)]))


def value_of(files: list[list[Row]], items: str, point: Mapping[str, Any]) -> float:
    """What the paper says of a point, as shown; NaN if nothing."""
    single, curves = files
    at, metric, labels = str(point["at"]), point["metric"], point["labels"]
    if at.startswith("first best of "):
        label, leader = at.removeprefix("first best of ").split(" ")
        rows = [row for row in single if row["at"] == "max"]
        own = fitting(rows, items, metric, labels)
        goal = fitting(rows, items, metric, labels | {label: leader})
        if not own or not goal or not own[0]["round"]:
            return NAN
        return float(own[0]["round"]) if own[0]["value"] >= goal[0]["value"] else math.inf
    scale = 1.0 if at.startswith("first ") else METRICS[metric].scale
    if printed := fitting([row for row in single if row["at"] == at], items, metric, labels):
        return round(float(printed[0]["value"]) * scale, 9)
    curve = fitting(curves, items, metric, labels)
    values = {int(row["round"]): float(row["value"]) for row in curve}
    return round(on_curve(values, at) * scale, 9) if values else NAN


def beyond(claim: Mapping[str, Any], points: Sequence[Any], values: list[float], way: str) -> Any:
    """By how much a comparison exceeds what its claim asks; None if it cannot be judged."""
    kind, margin, along = claim["kind"], claim.get("margin", 0), claim.get("along", "")
    have = [(point, value) for point, value in zip(points, values, strict=True) if value == value]
    numbers = [value for _, value in have]
    counts_rounds = str(claim.get("at")).startswith("first ")
    sign = -1 if counts_rounds or METRICS[claim["metric"]].better == "low" else 1
    if kind == "best":
        sides: dict[bool, list[float]] = {True: [], False: []}
        for point, value in have:
            sides[point["labels"][along] in map(str, claim["among"])].append(sign * value)
        return max(sides[True]) - max(sides[False]) if all(sides.values()) else None
    if kind == "order" or (kind == "range" and along):
        if len(numbers) < 2:
            return None
        if kind == "order":
            way_sign = 1 if claim["way"] == "falls" else -1
            return min(way_sign * (first - second) for first, second in pairwise(numbers))
        apart, low = max(numbers) - min(numbers), claim.get("above", -math.inf)
        limits = [min(numbers) - low, claim.get("below", math.inf) - max(numbers)]
        limits += [claim["within"] - apart + 1e-9] if "within" in claim else []
        return min(limits + ([apart - claim["beyond"]] if "beyond" in claim else []))
    if len(have) < len(points):
        return None
    if kind == "slower" and claim["at"] == "max":
        return values[1] - claim.get("times", 1) * values[0]
    if kind == "slower":
        ends = [int(str(point["at"]).split("-")[1]) for point in points]
        too_early = [
            sign * value
            for number, (end, value) in enumerate(zip(ends, values, strict=True))
            if number == 1 or (number and end < claim.get("times", 1) * ends[0])
        ]
        return sign * values[0] - max(too_early) - 1e-9
    if kind == "range":
        above, below = claim.get("above", -math.inf), claim.get("below", math.inf)
        return min(values[0] - above, below - values[0])
    if kind == "gap":
        return (values[0] - values[1]) - (values[2] - values[3])
    return (values[0] - values[1]) * (-1 if way == "below" else 1) - margin


def verdict_over_settings(values: list[float], margin: float) -> str:
    """The verdict by signed ranks and by signs, both one-sided at 5 %."""
    for sign, outcome in ((1, "held"), (-1, "not held")):
        apart = sign * (np.subtract(values[::2], values[1::2]) - margin)
        ranks = stats.wilcoxon(apart, alternative="greater", method="exact").pvalue
        signs = stats.binomtest(int((apart > 0).sum()), len(apart), alternative="greater").pvalue
        if max(ranks, signs) <= 0.05:
            return outcome
    return "undecided"


def verdict(claim: Mapping[str, Any], files: list[list[Row]]) -> str:
    """The verdict on a claim by the paper's own values."""
    outcomes, items = [], claim.get("paper", "")
    for comparison in claim["comparisons"]:
        points = comparison["points"]
        values = [value_of(files, items, point) if items else NAN for point in points]
        excess = beyond(claim, points, values, comparison["way"])
        if excess is None:
            return "no value"
        sign = np.sign(round(float(excess), 9))
        outcome = "held" if sign > 0 else "tie" if sign == 0 else "not held"
        if claim["kind"] == "average":
            outcome = verdict_over_settings(values, claim.get("margin", 0))
        outcomes.append(outcome)
    return next(name for name in ("not held", "tie", "undecided", "held") if name in outcomes)


@pytest.mark.parametrize("study", ["aml", "peco", "ucb", "fedentopt", "stratify"])
def test_verdicts_by_the_papers_own_values(study: str) -> None:
    """Where they contradict a sentence, the study quotes it and the numbers, and only there."""
    with chdir(ROOT):
        spec = claims_spec(plan_all(study), study) | {"metrics": {}}
        judged = judged_claims(spec)
    assert {claim.measured for claim in judged} == {"not enough runs"}
    files = rows_of(study)
    expected = {name: verdict(claim, files) for name, claim in spec["claims"].items()}
    assert {claim.claim: claim.paper for claim in judged} == expected
    evidence = {claim.claim: claim.paper_evidence for claim in judged}
    for name, entry in spec["claims"].items():
        assert ("against" in entry) == (expected[name] == "not held"), name
        if "against" in entry:
            assert entry["quote"] and entry["reading"]
            numbers = re.findall(r"\d+\.\d+|(?<=\bepoch )\d+", entry["against"])
            assert numbers and set(numbers) <= set(re.findall(r"\d+(?:\.\d+)?", evidence[name]))
