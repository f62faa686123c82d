"""Judges the claims of a study, by our runs and by the paper's own values, and writes the verdicts.

A comparison is a list of clauses, all of which must be true; a clause is true if one of its
contrasts, a difference seed by seed, is above 0. Held is an intersection-union test: each clause is
tested at 5 %, which its alternatives share. For not held Holm's correction covers all clauses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import pandas as pd

from cohort.core.files import write_text
from cohort.core.sealed_json import from_json, to_sealed_json
from cohort.core.text import counted
from cohort.results.at import scaled_at
from cohort.results.claims import CLAIMS
from cohort.results.claims.claim import Claim, short_name
from cohort.results.claims.judged import (
    HELD,
    HOLDS,
    LEANS_HELD,
    LEANS_NOT_HELD,
    MARKS,
    NO_PAPER,
    NOT_HELD,
    NOT_JUDGED,
    TIE,
    UNDECIDED,
    Difference,
    Evidence,
    JudgedClaim,
    JudgedComparison,
    NamedPoint,
    Numbers,
    claims_table,
    lay_out,
)
from cohort.results.claims.matrix import Comparison, Point
from cohort.results.claims.values import (
    NEVER,
    Value,
    last_round,
    measured_values,
    paper_values,
    values_by_seed,
    with_common_seeds,
)
from cohort.results.files import restored_notes
from cohort.results.intervals import (
    ALPHA,
    ENOUGH_SEEDS,
    LEAST_SEEDS,
    NOT_ENOUGH,
    Sample,
    holm_levels,
)
from cohort.results.names import METRICS, Names
from cohort.results.paper import doubts
from cohort.results.series import FULL, is_generated, read_metric
from cohort.results.tables.layout import latex, markdown

TITLE = "Claims"
NO_VERDICT = "no verdict"
GENERATED_EVIDENCE = "generated stand-in data"
LEANING = {HELD: LEANS_HELD, NOT_HELD: LEANS_NOT_HELD}
WORST_FIRST = (NOT_HELD, LEANS_NOT_HELD, TIE, UNDECIDED, LEANS_HELD, HELD)
NAMED = 3  # how many of the points without a value the evidence names

Clauses = list[list[Sample]]
Valued = tuple[Comparison, list[Value]]
"""A comparison with the values of its points."""
Bounded = tuple[Sample, float, float]
"""A contrast with the one-sided bounds of its mean: held if the low one is above 0, not held if the
high one is below."""


def write_judged(spec: Mapping[str, Any], outputs: Sequence[str | Path]) -> None:
    """Judge the claims of `spec` and write them to each output (.csv, .md, .tex, or .json with
    every comparison and its numbers)."""
    claims = judged_claims(spec)
    bare = [replace(claim, measured_evidence="", paper_evidence="") for claim in claims]
    layout, verdicts = lay_out(claims, spec["scale"]), lay_out(bare, spec["scale"])
    for form in (layout, verdicts):
        form.notes.extend(restored_notes(spec["metrics"].values()))
    formats = {
        ".csv": lambda: claims_table(claims).to_csv(index=False, lineterminator="\n"),
        ".md": lambda: markdown(layout, TITLE, ""),
        ".tex": lambda: latex(verdicts, TITLE, ""),
        ".json": lambda: to_sealed_json({"claims": list(map(asdict, claims))}),
    }
    for output in outputs:
        write_text(output, formats[Path(output).suffix]())


@dataclass(frozen=True)
class Judgment:
    """The verdict on a claim, by our runs or by the paper's values, with the evidence as text and
    comparison by comparison.

    `values` has the value of each point once, `gap` says what is missing for a verdict, `doubtful`
    has the doubts about the paper's values.
    """

    verdict: str
    evidence: str
    values: Sequence[Value] = ()
    comparisons: Sequence[Evidence] = ()
    gap: str = ""
    doubtful: str = ""


def judged_claims(spec: Mapping[str, Any]) -> list[JudgedClaim]:
    """Judge each claim by our runs and by the paper's own values; return verdicts and evidence."""
    names = Names(orders={}, titles=dict(spec.get("titles", {})))
    is_judged = spec["scale"] == FULL or not spec.get("reproduces", True)

    @cache  # claims share experiments and metrics
    def read(experiment: str, metric: str) -> pd.DataFrame | None:
        file = spec["metrics"].get(experiment)
        return read_metric(file, metric) if file else None

    judged = []
    for name, entry in spec["claims"].items():
        claim, shares = CLAIMS[entry["kind"]].from_spec(entry), entry["rounds"]
        scaled = replace(claim, at=scaled_at(claim.at, shares[claim.experiment]))
        comparisons = from_json(list[Comparison], entry["comparisons"])
        points = [point for comparison in comparisons for point in comparison.points]
        printed = with_values(comparisons, paper_values(points, spec["study"], claim.paper))
        measured = [
            (_at_scale(comparison, shares), values)
            for comparison, values in with_values(comparisons, measured_values(points, read))
        ]
        papers = judge_paper(claim, printed, names)
        runs = judge_runs(scaled, measured, names, judged=is_judged)
        frames = (read(point.experiment, point.metric) for point in points)
        if any(is_generated(frame) for frame in frames if frame is not None):
            papers = Judgment(NO_VERDICT, GENERATED_EVIDENCE)
            runs = Judgment(NO_VERDICT, GENERATED_EVIDENCE, runs.values)
        judged.append(_judged_claim(name, scaled, comparisons, papers, runs, names))
    return judged


def with_values(comparisons: Sequence[Comparison], values: Sequence[Value]) -> list[Valued]:
    """Pair each comparison with the values of its points; `values` holds all of them in order."""
    rest = iter(values)
    return [(comparison, list(islice(rest, len(comparison.points)))) for comparison in comparisons]


def _at_scale(comparison: Comparison, shares: Mapping[str, float]) -> Comparison:
    """The comparison for runs that train shares of their rounds, given by experiment."""
    points = []
    for point in comparison.points:
        share = shares[point.experiment]
        at, rounds = scaled_at(point.at, share), round(point.rounds * share)
        points.append(replace(point, at=at, rounds=rounds))
    return replace(comparison, points=points)


def _judged_claim(
    name: str,
    claim: Claim,
    comparisons: Sequence[Comparison],
    papers: Judgment,
    runs: Judgment,
    names: Names,
) -> JudgedClaim:
    compared = []
    for comparison, *sides in zip_longest(comparisons, papers.comparisons, runs.comparisons):
        points = [
            NamedPoint(claim.name_of(point, names), point.experiment, point.labels)
            for point in comparison.points
        ]
        evidence = {side: part for side, part in zip(("paper", "ours"), sides, strict=True) if part}
        compared.append(JudgedComparison(comparison_name(comparison, names), points, evidence))
    return JudgedClaim(
        claim=name,
        says=claim.says,
        where=claim.where,
        kind=claim.name,
        metric=claim.metric,
        at=claim.at,
        measured=runs.verdict,
        measured_evidence=runs.evidence,
        n=sum(value.n for value in runs.values),
        planned=sum(value.planned for value in runs.values),
        diverged=sum(value.diverged for value in runs.values),
        paper=papers.verdict,
        paper_evidence=papers.evidence,
        doubtful=papers.doubtful,
        gap=runs.gap,
        paper_gap=papers.gap,
        comparisons=compared,
    )


def judge_runs(
    claim: Claim, valued: Sequence[Valued], names: Names, *, judged: bool = True
) -> Judgment:
    """Judge a claim on our runs. A scale that is not `judged`, or a planned run that is not
    finished, prevents a verdict."""
    values = _values_once(valued)
    missing, unplanned = _missing(claim, valued, names), sum(not value.planned for value in values)
    gap = f"lacks runs of {missing}" if missing else ""
    gap += f" ({unplanned} of {len(values)} settings are not planned)" if unplanned else ""
    rows = [] if gap else [values_by_seed(own_values) for _, own_values in valued]
    fewest = min((row.shape[1] for row in rows), default=0)
    if not gap and fewest < (1 if claim.is_over_settings else LEAST_SEEDS):
        gap = f"{counted(fewest, 'seed')} in common, at least {LEAST_SEEDS} are needed"
    if gap or not judged:
        verdict = NOT_ENOUGH if judged else NOT_JUDGED
        evidence = [_evidence(claim, *pair, names) for pair in valued]
    else:
        clauses = []
        for (comparison, _), row in zip(valued, rows, strict=True):
            own = claim.clauses(comparison, list(row))
            clauses.append([list(map(claim.contrast, clause)) for clause in own])
        decided = decide(clauses, every_run=claim.is_about_every_run())
        evidence = [
            _evidence(claim, comparison, with_common_seeds(own_values, row), names, *decision)
            for (comparison, own_values), row, decision in zip(valued, rows, decided, strict=True)
        ]
        verdict = overall_verdict([word for word, _ in decided])
        has_few = fewest < ENOUGH_SEEDS and not claim.is_over_settings
        if has_few and verdict in (UNDECIDED, LEANS_HELD, LEANS_NOT_HELD):
            gap = f"{fewest} seeds; a verdict needs at least {ENOUGH_SEEDS}"
    text = _evidence_text(valued, evidence, gap, names)
    return Judgment(verdict, text, values, evidence, gap)


def judge_paper(claim: Claim, valued: Sequence[Valued], names: Names) -> Judgment:
    """Judge a claim on the paper's own values, single ones without an interval, if enough: a
    comparison may do without the points that have none."""
    evidence = []
    for comparison, values in valued:
        points = [
            point
            for point, value in zip(comparison.points, values, strict=True)
            if value.is_complete
        ]
        part, verdict = None, ""
        if len(points) == len(values) or claim.has_enough(points):
            part = replace(comparison, points=points)
            side = claim.side(part, [value.value for value in values if value.is_complete])
            verdict = (NOT_HELD, UNDECIDED if claim.is_over_settings else TIE, HELD)[side + 1]
        evidence.append(_evidence(claim, comparison, values, names, verdict, part=part))
    verdicts = [part.verdict for part in evidence]
    values = [value for _, own_values in valued for value in own_values]
    missing = _missing(claim, valued, names)
    has_some = any(value.is_complete for value in values)
    gap = f"no value for {missing}" if missing and has_some else ""
    return Judgment(
        overall_verdict(verdicts) if all(verdicts) else NO_PAPER,
        _evidence_text(valued, evidence, gap, names),
        _values_once(valued),
        comparisons=evidence,
        gap=gap,
        doubtful=doubts(value.doubtful for value in values),
    )


def decide(
    comparisons: Sequence[Clauses], *, every_run: bool = False
) -> list[tuple[str, Bounded | None]]:
    """The verdict on each comparison of a claim, and the best contrast of its worst clause, None if
    it has no clause; with `every_run` all runs must bear the claim out."""
    clauses = list(chain.from_iterable(comparisons))
    levels = iter(holm_levels(list(map(_refutation, clauses))))
    return [_decided(own, list(islice(levels, len(own))), every_run) for own in comparisons]


def _decided(
    clauses: Clauses, levels: Sequence[float], every_run: bool
) -> tuple[str, Bounded | None]:
    contrasts = list(chain.from_iterable(clauses))
    bests = [max(clause, key=_strength) for clause in clauses]
    tested = zip(map(_refutation, clauses), levels, strict=True)
    if every_run:
        verdict = HELD if all(contrast.above == contrast.n for contrast in contrasts) else NOT_HELD
    elif any(p_value <= level for p_value, level in tested):
        verdict = NOT_HELD
    elif all(_confirmation(clause) <= ALPHA for clause in clauses):
        verdict = HELD
    else:  # no number of seeds decides where the best contrast is 0 in each
        verdict = TIE if any(best.mean == best.sd == 0 for best in bests) else UNDECIDED
    is_refuted = every_run and verdict == NOT_HELD  # by one run, however few there are
    if not is_refuted and any(contrast.n < ENOUGH_SEEDS for contrast in contrasts):
        verdict = LEANING.get(verdict, verdict)
    if not clauses:
        return verdict, None
    worst = min(range(len(clauses)), key=lambda index: _strength(bests[index]))
    low, _ = bests[worst].interval(2 * ALPHA / len(clauses[worst]))
    _, high = bests[worst].interval(2 * levels[worst])
    return verdict, (bests[worst], low, high)


def _confirmation(clause: Sequence[Sample]) -> float:
    """The p-value of the hypothesis that no contrast of a clause is above 0."""
    return min(contrast.p_above() for contrast in clause) * len(clause)


def _refutation(clause: Sequence[Sample]) -> float:
    """The p-value of the hypothesis that some contrast of a clause is not below 0."""
    return max((-contrast).p_above() for contrast in clause)


def _strength(contrast: Sample) -> float:
    """The contrast's mean in half-widths of its interval."""
    half = contrast.half_width()
    if half:
        return contrast.mean / half
    return math.copysign(math.inf, contrast.mean) if contrast.mean else 0.0


def overall_verdict(verdicts: Sequence[str]) -> str:
    """The verdict on a claim: the worst one on its comparisons, all of which must hold."""
    return min(verdicts, key=WORST_FIRST.index, default=HELD)


def _evidence(
    claim: Claim,
    comparison: Comparison,
    values: Sequence[Value],
    names: Names,
    verdict: str = "",
    deciding: Bounded | None = None,
    part: Comparison | None = None,
) -> Evidence:
    """The evidence of a comparison with the values of its points. `part` is the part of it that can
    be judged; by default the whole if all values are complete, else nothing."""
    numbers = [_numbers(claim, value) for value in values]
    shown = [value.value for value in values if value.is_complete]
    if part is None and len(shown) == len(values):
        part = comparison
    if part is None:
        return Evidence(numbers)
    return Evidence(
        numbers,
        claim.opening(part, names),
        claim.shown(part, shown, names),
        verdict,
        _difference(claim, *deciding) if deciding else None,
        _remarks(claim, comparison, values, names),
    )


def _numbers(claim: Claim, value: Value) -> Numbers:
    """Format the runs behind a point, or the paper's value for it."""
    sample = value.sample
    mean = claim.number(value.value) if value.is_complete or sample.n else ""
    if sample.n < 2 or value.value == NEVER:
        return Numbers(mean, n=sample.n, planned=value.planned)
    interval = sample.interval()
    if not claim.counts_rounds():
        interval = METRICS[claim.metric].clip_interval(sample.mean, interval)
    sd, low, high = map(claim.number, (sample.sd, *interval))
    return Numbers(mean, sd, low, high, sample.n, value.planned)


def _difference(claim: Claim, contrast: Sample, *bounds: float) -> Difference:
    if claim.is_about_every_run():
        return Difference("", "", "", f"in {contrast.above} of {contrast.n} runs")
    mean, low, high = (
        f"{'+' if value > 0 else ''}{claim.number(value) if abs(value) < NEVER else value}"
        for value in (contrast.mean, *bounds)
    )
    is_tie = not contrast.above and not contrast.below
    where = "tie in all" if is_tie else f"above 0 in {contrast.above} of"
    seeds = f"{where} {contrast.n} {contrast.unit}"
    return Difference(mean, low.replace("inf", "∞"), high.replace("inf", "∞"), seeds)


def _remarks(claim: Claim, comparison: Comparison, values: Sequence[Value], names: Names) -> str:
    """Text for the evidence: how many runs of each point did not reach the threshold, diverged, or
    ended at chance level, and to how many rounds means are restricted."""
    remarks = []
    several = [value for value in values if value.n > 1]
    for point, value in zip(comparison.points, values, strict=True):
        counts = {
            "do not reach it": value.censored,
            "diverged": value.diverged,
            "at chance level": value.at_chance,
        }
        name = claim.name_of(point, names)
        remarks += [
            f", {count} of {value.n} runs {what} ({name})"
            for what, count in counts.items()
            if count and value.n > 1
        ]
    if any(value.censored for value in several):
        remarks.append(f", means restricted to {last_round(values) + 1:.6g} rounds")
    return "".join(remarks)


def _evidence_text(
    valued: Sequence[Valued], evidence: Sequence[Evidence], gap: str, names: Names
) -> str:
    """The numbers of all comparisons that could be made, each with a mark where it does not hold,
    how many hold, and the gap, as text."""
    lines, shown = [], [part for part in evidence if part.shown]
    for (comparison, _), part in zip(valued, evidence, strict=True):
        if part.shown:
            mark = f"{MARKS[part.verdict]} " if part.verdict in MARKS else ""
            name = comparison_name(comparison, names) if len(valued) > 1 else ""
            bracket = f" [{part.difference.text}]" if part.difference else ""
            opening = f"{name}: " if name else ""
            lines.append(f"{mark}{opening}{part.shown}{bracket}{part.remarks}")
    opening = f"{shown[0].opening}: " if shown and shown[0].opening else ""
    if len(shown) > 1 and shown[0].verdict:
        hold = sum(part.verdict in HOLDS for part in shown)
        opening += f"{hold} of {len(shown)} hold: "
    return "; ".join(filter(None, [opening + "; ".join(lines), gap]))


def _missing(claim: Claim, valued: Sequence[Valued], names: Names) -> str:
    """The names of the points without a complete value, or of the first of them, as text."""
    missing: dict[tuple[str, ...], str] = {}
    for comparison, values in valued:
        for point, value in zip(comparison.points, values, strict=True):
            if not value.is_complete:
                missing[point.key] = _full_name(claim, point, comparison, names)
    more = len(missing) - NAMED
    named = " / ".join(list(missing.values())[:NAMED])
    return f"{named} and {more} more" if more > 0 else named


def _values_once(valued: Sequence[Valued]) -> list[Value]:
    """The value of each point, once; if comparisons disagree on it, that of fewest runs."""
    once: dict[tuple[str, ...], Value] = {}
    for comparison, values in valued:
        for point, value in zip(comparison.points, values, strict=True):
            once[point.key] = min(once.get(point.key, value), value, key=lambda shared: shared.n)
    return list(once.values())


def comparison_name(comparison: Comparison, names: Names) -> str:
    """The label values that tell a comparison from the others of its claim, as text."""
    return ", ".join(short_name(label, value, names) for label, value in comparison.name.items())


def _full_name(claim: Claim, point: Point, comparison: Comparison, names: Names) -> str:
    """The name of a point, followed by that of its comparison."""
    both = [claim.name_of(point, names), comparison_name(comparison, names)]
    return ", ".join(filter(None, both))
