"""Verdicts by the papers' own values, against an oracle that reads the files and decides each claim
in plain Python; what is compared is taken from the plan."""

from __future__ import annotations

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

from cohort.pipeline.specs import claims_spec
from cohort.results.claims.judge import judged_claims
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


def is_of(item: str, name: str) -> bool:
    """Whether a row's item, such as `Fig3/5/6/7` or `Fig9-12`, contains this one."""
    word, numbers = re.fullmatch(r"([A-Za-z]*)(.*)", name).groups()  # type: ignore[union-attr]
    listed = [f"{word}{number}" for number in numbers.split("/")]
    if span := re.fullmatch(r"([0-9]+)-([0-9]+)", numbers):
        listed = [f"{word}{number}" for number in range(int(span[1]), int(span[2]) + 1)]
    return item in (name, *listed)


def fitting(rows: Sequence[Row], items: str, metric: str, labels: Row) -> list[Row]:
    """The rows of these items whose labels contradict none of a point's, of the best source."""
    fits = [
        row
        for row in rows
        if row["metric"] == metric
        and any(is_of(item.strip(), row["item"]) for item in items.split(","))
        and all(
            labels.get(label, "–") in ("–", text)
            for label, text in row.items()
            if label not in FIXED and text
        )
    ]
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
    first, _, last = {"last": f"{end}-{end}", "last-10": f"{end - 9}-{end}"}.get(at, at).partition(
        "-"
    )
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
    if found := fitting([row for row in single if row["at"] == at], items, metric, labels):
        return round(float(found[0]["value"]) * scale, 9)
    curve = fitting(curves, items, metric, labels)
    values = {int(row["round"]): float(row["value"]) for row in curve}
    return round(on_curve(values, at) * scale, 9) if values else NAN


def holds(
    claim: Mapping[str, Any], points: Sequence[Any], values: Sequence[float], way: str
) -> Any:
    """By how much a comparison exceeds what its claim asks, or its verdict; None if it cannot be
    judged."""
    kind, margin = claim["kind"], claim.get("margin", 0)
    have = [(point, value) for point, value in zip(points, values, strict=True) if value == value]
    counts_rounds = str(claim.get("at")).startswith("first ")
    low = counts_rounds or METRICS[claim["metric"]].better == "low"
    known = [-value if low else value for _, value in have]
    if kind == "best":
        among = list(map(str, claim["among"]))
        ours = [point["labels"][claim["along"]] in among for point, _ in have]
        if len(set(ours)) < 2:
            return None
        inside = [value for value, own in zip(known, ours, strict=True) if own]
        return max(inside) - max(value for value, own in zip(known, ours, strict=True) if not own)
    if kind == "order" or (kind == "range" and "along" in claim):
        numbers = [value for _, value in have]
        if len(numbers) < 2:
            return None
        if kind == "order":
            sign = 1 if claim["way"] == "falls" else -1
            return min(sign * (first - second) for first, second in pairwise(numbers))
        apart, margins = max(numbers) - min(numbers), [math.inf]
        margins += [claim["within"] - apart + 1e-9] if "within" in claim else []
        margins += [apart - claim["beyond"]] if "beyond" in claim else []
        low_end, high_end = claim.get("between", (-math.inf, math.inf))
        return min(*margins, min(numbers) - low_end + 1e-9, high_end - max(numbers) + 1e-9)
    if len(have) < len(points):
        return None
    if kind == "average":
        differences = np.subtract(values[::2], values[1::2]) - margin
        p_values = [
            max(
                stats.wilcoxon(sign * differences, alternative="greater", method="exact").pvalue,
                stats.binomtest(
                    int((sign * differences > 0).sum()), len(differences), alternative="greater"
                ).pvalue,
            )
            for sign in (1, -1)
        ]
        return "held" if p_values[0] <= 0.05 else "not held" if p_values[1] <= 0.05 else "undecided"
    if kind == "compare":
        return (values[0] - values[1]) * (1 if way == "above" else -1) - margin
    if kind == "gain":
        return values[0] - values[1] - margin
    if kind == "gap":
        return (values[0] - values[1]) - (values[2] - values[3])
    if kind == "range":
        return min(
            values[0] - claim.get("above", -math.inf), claim.get("below", math.inf) - values[0]
        )
    assert kind == "slower"
    if claim["at"] == "max":
        return values[1] - claim.get("times", 1) * values[0]
    lasts = [int(str(point["at"]).split("-")[1]) for point in points]
    early = [
        value
        for number, (last, value) in enumerate(zip(lasts[1:], known[1:], strict=True))
        if number == 0 or last < claim.get("times", 1) * lasts[0]
    ]
    return known[0] - max(early) - 1e-9


def verdict(claim: Mapping[str, Any], files: list[list[Row]]) -> str:
    """The verdict on a claim by the paper's own values."""
    words = []
    for comparison in claim["comparisons"]:
        points = comparison["points"]
        items = claim.get("paper", "")
        values = [value_of(files, items, point) if items else NAN for point in points]
        margin = holds(claim, points, values, comparison["way"])
        if margin is None:
            return "no value"
        if isinstance(margin, float):
            margin = round(margin, 9)
            margin = "held" if margin > 0 else "tie" if margin == 0 else "not held"
        words.append(margin)
    return next(word for word in ("not held", "tie", "undecided", "held") if word in words)


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
            decimals, epochs = r"\d+\.\d+", r"(?<=\bepoch )\d+"
            numbers = re.findall(decimals, entry["against"]) + re.findall(epochs, entry["against"])
            assert numbers and set(numbers) <= set(re.findall(r"\d+(?:\.\d+)?", evidence[name]))
