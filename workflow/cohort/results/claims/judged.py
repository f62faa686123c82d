"""Judges the claims of a study by our runs and by the paper's own values.

A comparison is a list of clauses, all of which must be true; a clause is true if one of its
contrasts, a difference seed by seed, is above 0. Held is an intersection-union test: each clause is
tested at 5 %, which its alternatives share. For not held Holm's correction covers all clauses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import chain, compress, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cohort.core import counted, files, lazy
from cohort.core.sealed_json import from_json, read_sealed, to_sealed_json
from cohort.results import series, statistics
from cohort.results.claims import values as point_values
from cohort.results.claims.claim import Claim, PointComparison, short_name
from cohort.results.claims.kinds import CLAIMS
from cohort.results.claims.values import NEVER, Value
from cohort.results.names import METRICS, Names
from cohort.results.paper import doubts
from cohort.results.series import restored_notes
from cohort.results.statistics import ALPHA, ENOUGH_SEEDS, MIN_SEEDS, NOT_ENOUGH, Sample
from cohort.results.tables import tabulate as tables
from cohort.results.tables.tabulate import DAGGER, DOUBLE_DAGGER, Entry, Layout

if TYPE_CHECKING:
    import pandas as pd

    Metrics = Callable[[str, str], pd.DataFrame | None]  # of an experiment and metric
else:
    pd = lazy("pandas")

TITLE = "Claims"
MAX_NAMED = 3  # how many of the points without a value the evidence names
MAX_SHOWN = 3  # of how many comparisons a table of claims has the numbers
HELD, NOT_HELD, UNDECIDED, TIE = "held", "not held", "undecided", "tie"
LEANS_HELD, LEANS_NOT_HELD = "leans towards held", "leans towards not held"
NO_PAPER, NOT_JUDGED = "no value", "not judged at this scale"
HOLDS, LEANING = (HELD, LEANS_HELD), {HELD: LEANS_HELD, NOT_HELD: LEANS_NOT_HELD}
WORST_FIRST = (NOT_HELD, LEANS_NOT_HELD, TIE, UNDECIDED, LEANS_HELD, HELD)
OPEN_VERDICTS = (UNDECIDED, LEANS_HELD, LEANS_NOT_HELD)
SHOWN_ORDER = (HELD, NOT_HELD, LEANS_HELD, LEANS_NOT_HELD, TIE, UNDECIDED)
CROSS, OPEN, EQUAL = "✗", "?", "="
MARKS = {NOT_HELD: CROSS, LEANS_NOT_HELD: CROSS, UNDECIDED: OPEN, TIE: EQUAL}

MEASURED = (
    "Measured: a verdict is about the typical seed, and all comparisons of a claim must hold. Held "
    "or not held: at least 5 seeds, paired, of which the interval of the mean (Student's t) and an "
    "exact sign test are both on one side of what the claim asks; leans: the interval of 3 or 4 "
    "seeds is."
)
BRACKETS = (
    "In brackets: by how much the closest comparison exceeds what the claim asks, the one-sided "
    "bounds of that (95 %, corrected for several comparisons), and in how many seeds it does."
)
PAPER = "The paper's own numbers are compared as they are, without intervals."
TOO_FEW = f"{NOT_ENOUGH.capitalize()}: a planned run is missing, or there are fewer than 3 seeds."

Clauses = list[list[Sample]]
ComparisonValues = list[tuple[PointComparison, list[Value]]]
"""Comparisons with the values of their points."""
BoundedContrast = tuple[Sample, float, float]
"""A contrast with the one-sided bounds of its mean: the low one is above 0 where it holds, the high
one below where it does not."""


@dataclass(frozen=True)
class Evidence:
    """The verdict on one comparison by our runs or by the paper's values, and `shown`, which puts
    them in relation; `text` says all. Where a value is missing there are only the numbers.

    `numbers` has for each point its value, or the `mean`, `sd` and interval (`low`, `high`) of its
    runs, as text, and how many there are (`n`) of those `planned`. `difference` is what exceeds the
    claim's demand: `mean`, bounds, in how many `seeds`, and `text`; of `every` run only the seeds.
    """

    numbers: list[dict[str, Any]]
    opening: str = ""
    shown: str = ""
    verdict: str = ""
    difference: dict[str, str] = field(default_factory=dict)
    text: str = ""
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class JudgedClaim:
    """A claim with its verdicts by our runs (`measured`) and by the paper's own values, and the
    evidence as text and comparison by comparison. Rounds are those of the full scale. A comparison
    has a `name` that tells it from the claim's others, its `points` with their names, experiments
    and labels, and `sides`: the Evidence by the paper's values and by `ours`."""

    claim: str
    says: str
    where: str
    kind: str
    metric: str
    at: int | str
    measured: str
    measured_evidence: str
    n: int
    planned: int
    diverged: int
    paper: str
    paper_evidence: str
    doubtful: str
    gap: str
    paper_gap: str
    comparisons: list[dict[str, Any]]

    def evidence(self, side: str) -> list[Evidence]:
        """The evidence of each comparison by one of the `sides`, as far as there is any."""
        sides = [comparison["sides"] for comparison in self.comparisons if comparison["sides"]]
        return [Evidence(**parts[side]) for parts in sides]


class Judgment(NamedTuple):
    """The verdict on a claim, the evidence of each comparison, and what a verdict lacks (`gap`)."""

    verdict: str
    comparisons: Sequence[Evidence]
    gap: str

    @property
    def evidence(self) -> str:
        """The numbers of all comparisons that could be made, how many hold, and the gap."""
        return summary(self.comparisons, self.gap, len(self.comparisons))


def summary(comparisons: Sequence[Evidence], gap: str, most: int = MAX_SHOWN) -> str:
    """How many of these comparisons hold, the numbers of at most so many, those with the worst
    verdicts if there are more, and the gap."""
    comparable = [part for part in comparisons if part.shown]
    opening = f"{comparable[0].opening}: " if comparable and comparable[0].opening else ""
    if len(comparable) > 1 and comparable[0].verdict:
        hold = sum(part.verdict in HOLDS for part in comparable)
        opening += f"{hold} of {len(comparable)} hold: "
    texts = [f"and {len(comparable) - most} more"] if len(comparable) > most else []
    if texts and comparable[0].verdict:
        comparable.sort(key=lambda part: WORST_FIRST.index(part.verdict))
    lines = []
    for part in comparable[:most]:
        name = f"{part.name}:" if part.name and len(comparisons) > 1 else ""
        lines.append(" ".join(filter(None, [MARKS.get(part.verdict), name, part.text])))
    return "; ".join(filter(None, [opening + "; ".join([*lines, *texts]), gap]))


def write_judged(spec: Mapping[str, Any], outputs: Sequence[str | Path]) -> None:
    """Judge the claims of `spec`; write them to each output: .csv, .md, .tex, or all as .json."""
    claims = judged_claims(spec)
    table = pd.DataFrame(list(map(vars, claims))).drop(columns=["comparisons", "gap", "paper_gap"])
    texts = {"measured_evidence": "", "paper_evidence": "", "gap": "", "paper_gap": ""}
    bare = [JudgedClaim(**vars(claim) | texts | {"comparisons": []}) for claim in claims]
    layout, verdicts = (lay_out(form, spec["scale"]) for form in (claims, bare))
    for form in (layout, verdicts):  # LaTeX breaks no page within a row
        form.notes.extend(restored_notes(spec["metrics"].values()))
    formats = {
        ".csv": lambda: table.to_csv(index=False, lineterminator="\n"),
        ".md": lambda: tables.markdown(layout, TITLE, ""),
        ".tex": lambda: tables.latex(verdicts, TITLE, ""),
        ".json": lambda: to_sealed_json({"claims": list(map(asdict, claims))}),
    }
    for output in outputs:
        files.write_text(output, formats[Path(output).suffix]())


def judged_claims(spec: Mapping[str, Any]) -> list[JudgedClaim]:
    """Judge each claim by our runs and by the paper's own values; return verdicts and evidence."""

    @cache  # claims share experiments and metrics
    def read(experiment: str, metric: str) -> pd.DataFrame | None:
        file = spec["metrics"].get(experiment)
        return series.read_metric(file, metric) if file else None

    return [_judged_claim(name, entry, spec, read) for name, entry in spec["claims"].items()]


def _judged_claim(
    name: str, entry: Mapping[str, Any], spec: Mapping[str, Any], read: Metrics
) -> JudgedClaim:
    names = Names(titles=dict(spec.get("titles", {})))
    claim = CLAIMS[entry["kind"]].from_spec(entry)
    comparisons = from_json(list[PointComparison], entry["comparisons"])
    points = [point for comparison in comparisons for point in comparison.points]
    printed = point_values.paper_values(points, spec["study"], claim.paper)
    measured = with_values(comparisons, point_values.measured_values(points, read))
    papers = judge_paper(claim, with_values(comparisons, printed), names)
    is_judged = spec["scale"] == series.FULL or not spec.get("reproduces", True)
    runs = judge_runs(claim, measured, names, is_judged=is_judged)
    compared = []
    for comparison, paper, ours in zip_longest(comparisons, papers.comparisons, runs.comparisons):
        points = [
            {
                "name": claim.name_of(point, names),
                "experiment": point.experiment,
                "labels": point.labels,
            }
            for point in comparison.points
        ]
        sides = {"paper": asdict(paper), "ours": asdict(ours)} if ours else {}
        label = comparison_name(comparison, names)
        compared.append({"name": label, "points": points, "sides": sides})
    unique, _ = _by_point(claim, measured, names)
    texts = {key: getattr(claim, key) for key in ("says", "where", "metric", "at")}
    return JudgedClaim(
        claim=name,
        kind=claim.name,
        **texts,
        measured=runs.verdict,
        measured_evidence=runs.evidence,
        paper=papers.verdict,
        paper_evidence=papers.evidence,
        n=sum(value.n for value in unique),
        planned=sum(value.planned for value in unique),
        diverged=sum(value.diverged for value in unique),
        doubtful=doubts(value.doubtful for value in printed),
        gap=runs.gap if runs.comparisons else "",
        paper_gap=papers.gap if papers.comparisons else "",
        comparisons=compared,
    )


def with_values(comparisons: list[PointComparison], all_values: list[Value]) -> ComparisonValues:
    """Pair each comparison with the values of its points; `all_values` holds them in order."""
    rest = iter(all_values)
    return [(comparison, list(islice(rest, len(comparison.points)))) for comparison in comparisons]


def judge_runs(
    claim: Claim, comparisons: ComparisonValues, names: Names, *, is_judged: bool = True
) -> Judgment:
    """Judge a claim on our runs, if it `is_judged` at this scale and all planned runs are done."""
    unique, missing = _by_point(claim, comparisons, names)
    unplanned = sum(not value.planned for value in unique)
    gap = f"lacks runs of {missing}" if missing else ""
    gap += f" ({unplanned} of {len(unique)} settings are not planned)" if unplanned else ""
    paired = [] if gap else [point_values.on_common_seeds(values) for _, values in comparisons]
    common_seeds = min((rows.shape[1] for rows, _ in paired), default=0)
    if not gap and common_seeds < (1 if claim.is_over_settings else MIN_SEEDS):
        gap = f"{counted(common_seeds, 'seed')} in common, at least {MIN_SEEDS} are needed"
    if gap or not is_judged:
        verdict = NOT_ENOUGH if is_judged else NOT_JUDGED
        evidence = [_evidence(claim, *pair, names) for pair in comparisons]
        return Judgment(verdict, evidence, gap)
    contrasts = []
    for (comparison, _), (rows, _) in zip(comparisons, paired, strict=True):
        clauses = claim.clauses(comparison, list(rows))
        contrasts.append([list(map(claim.contrast, clause)) for clause in clauses])
    decided = decide(contrasts, every_run=getattr(claim, "every", None) == "runs")
    evidence = [
        _evidence(claim, comparison, shared, names, *decision)
        for (comparison, _), (_, shared), decision in zip(comparisons, paired, decided, strict=True)
    ]
    verdict = overall_verdict([verdict for verdict, _ in decided])
    if common_seeds < ENOUGH_SEEDS and not claim.is_over_settings and verdict in OPEN_VERDICTS:
        gap = f"{common_seeds} seeds; a verdict needs at least {ENOUGH_SEEDS}"
    return Judgment(verdict, evidence, gap)


def judge_paper(claim: Claim, comparisons: ComparisonValues, names: Names) -> Judgment:
    """Judge a claim on the paper's own values, single ones without an interval, if enough: a
    comparison may do without the points that have none."""
    evidence = []
    for comparison, values in comparisons:
        complete = [value.is_complete for value in values]
        points = list(compress(comparison.points, complete))
        part, verdict = None, ""
        if all(complete) or claim.has_enough(points):
            part = replace(comparison, points=points)
            side = claim.side(part, [value.value for value in compress(values, complete)])
            verdict = (NOT_HELD, UNDECIDED if claim.is_over_settings else TIE, HELD)[side + 1]
        evidence.append(_evidence(claim, comparison, values, names, verdict, part=part))
    verdicts = [part.verdict for part in evidence]
    _, missing = _by_point(claim, comparisons, names)
    has_some = any(value.is_complete for _, values in comparisons for value in values)
    gap = f"no value for {missing}" if missing and has_some else ""
    return Judgment(overall_verdict(verdicts) if all(verdicts) else NO_PAPER, evidence, gap)


def decide(
    comparisons: Sequence[Clauses], *, every_run: bool = False
) -> list[tuple[str, BoundedContrast | None]]:
    """The verdict on each comparison of a claim, and the best contrast of its worst clause, None if
    it has no clause; with `every_run` all runs must bear the claim out."""
    refutations = []  # p-values of the hypothesis that some contrast of a clause is not below 0
    for clause in chain.from_iterable(comparisons):
        refutations.append(max((-contrast).p_above() for contrast in clause))
    tests = zip(refutations, statistics.holm_levels(refutations), strict=True)
    return [_judge(clauses, [*islice(tests, len(clauses))], every_run) for clauses in comparisons]


def _judge(
    clauses: Clauses, refutations: Sequence[tuple[float, float]], every_run: bool
) -> tuple[str, BoundedContrast | None]:
    """The verdict on one comparison, and the deciding contrast with its bounds. `refutations` has
    each clause's p-value for failing and its Holm level."""
    contrasts = list(chain.from_iterable(clauses))
    bests = [max(clause, key=_strength) for clause in clauses]
    confirmations = []
    for clause in clauses:
        confirmations.append(len(clause) * min(contrast.p_above() for contrast in clause))
    if every_run:
        verdict = HELD if all(contrast.above == contrast.n for contrast in contrasts) else NOT_HELD
    elif any(p_value <= level for p_value, level in refutations):
        verdict = NOT_HELD
    elif all(p_value <= ALPHA for p_value in confirmations):
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
    _, high = bests[worst].interval(2 * refutations[worst][1])
    return verdict, (bests[worst], low, high)


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
    comparison: PointComparison,
    values: Sequence[Value],
    names: Names,
    verdict: str = "",
    contrast: BoundedContrast | None = None,
    part: PointComparison | None = None,
) -> Evidence:
    """The evidence on a comparison. `part` is what can be judged of it; by default all of it if
    every value is complete, else nothing."""
    numbers = [_numbers(claim, value) for value in values]
    complete = [value.value for value in values if value.is_complete]
    part = comparison if part is None and len(complete) == len(values) else part
    if part is None:
        return Evidence(numbers)
    difference = _difference(claim, *contrast) if contrast else {}
    evidence = claim.evidence(part, complete, names)
    text = evidence + (f" [{difference['text']}]" if difference else "")
    text += _notes(claim, comparison, values, names)
    name = comparison_name(comparison, names)
    texts = {"opening": claim.opening(part, names), "shown": evidence, "text": text, "name": name}
    return Evidence(numbers, verdict=verdict, difference=difference, **texts)


def _difference(claim: Claim, contrast: Sample, *bounds: float) -> dict[str, str]:
    """The `difference` of an Evidence."""
    if getattr(claim, "every", None) == "runs":
        seeds = f"in {contrast.above} of {contrast.n} runs"
        return {"seeds": seeds, "mean": "", "low": "", "high": "", "text": seeds}
    texts = []
    for value in (contrast.mean, *bounds):
        number = claim.number(value) if abs(value) < NEVER else f"{value}".replace("inf", "∞")
        texts.append(f"{'+' if value > 0 else ''}{number}")
    is_tie = not contrast.above and not contrast.below
    where = "tie in all" if is_tie else f"above 0 in {contrast.above} of"
    seeds, (mean, low, high) = f"{where} {contrast.n} {contrast.unit}", texts
    text = f"{mean}, {low} to {high}, {seeds}"
    return {"seeds": seeds, "mean": mean, "low": low, "high": high, "text": text}


def _numbers(claim: Claim, value: Value) -> dict[str, Any]:
    """The `numbers` of an Evidence: the runs behind a point, or the paper's value for it."""
    sample, spread = Sample.of(value.cut_off()), [""] * 3
    mean = claim.number(value.value) if value.is_complete or sample.n else ""
    if sample.n > 1 and value.value != NEVER:
        interval = sample.interval()
        if not claim.counts_rounds():
            interval = METRICS[claim.metric].clip_interval(sample.mean, interval)
        spread = list(map(claim.number, (sample.sd, *interval)))
    numbers = dict(zip(("mean", "sd", "low", "high"), (mean, *spread), strict=True))
    return numbers | {"n": sample.n, "planned": value.planned}


def _notes(claim: Claim, comparison: PointComparison, values: Sequence[Value], names: Names) -> str:
    """Text for the evidence: how many runs of each point did not reach the threshold, diverged, or
    ended at chance level, and to how many rounds means are restricted."""
    text, is_cut = "", False
    for point, value in zip(comparison.points, values, strict=True):
        if value.n > 1:
            counts = {
                "do not reach it": value.censored,
                "diverged": value.diverged,
                "at chance level": value.at_chance,
            }
            name, is_cut = claim.name_of(point, names), is_cut or bool(value.censored)
            for outcome, count in counts.items():
                text += f", {count} of {value.n} runs {outcome} ({name})" if count else ""
    if is_cut:
        text += f", means restricted to {point_values.last_round(values) + 1:.6g} rounds"
    return text


def _by_point(claim: Claim, comparisons: ComparisonValues, names: Names) -> tuple[list[Value], str]:
    """The value of each point once, that of fewest runs where comparisons disagree, and the names
    of the first points without a complete value."""
    by_key: dict[tuple[str, ...], Value] = {}
    missing: dict[tuple[str, ...], str] = {}
    for comparison, values in comparisons:
        for point, value in zip(comparison.points, values, strict=True):
            by_key[point.key] = min(by_key.get(point.key, value), value, key=lambda value: value.n)
            if not value.is_complete:
                parts = [claim.name_of(point, names), comparison_name(comparison, names)]
                missing[point.key] = ", ".join(filter(None, parts))
    named, more = " / ".join(list(missing.values())[:MAX_NAMED]), len(missing) - MAX_NAMED
    return list(by_key.values()), f"{named} and {more} more" if more > 0 else named


def comparison_name(comparison: PointComparison, names: Names) -> str:
    """The label values that tell a comparison from the others of its claim, as text."""
    return ", ".join(short_name(label, value, names) for label, value in comparison.name.items())


def read_judged(file: str | Path) -> list[JudgedClaim]:
    """Read claims as `write_judged` writes them. Raise UserError for a missing or damaged file."""
    return from_json(list[JudgedClaim], read_sealed(file, "judged claims")["claims"])


def lay_out(claims: Sequence[JudgedClaim], scale: str) -> Layout:
    """Lay out claims as a table, a row each: sentence, where the paper says it, and the verdicts by
    our runs and by the paper's values, if it has any, each with its evidence."""
    has_paper = any(claim.paper != NO_PAPER for claim in claims)
    columns = ["Measured", "The paper's own numbers say"] if has_paper else ["Measured"]
    layout = Layout(["Claim", "Where"], columns, prose=True)
    for claim in claims:
        mark, runs = DAGGER * bool(claim.diverged), f"{claim.n} of {claim.planned} runs"
        texts = [f"{claim.measured}{mark} ({runs})", summary(claim.evidence("ours"), claim.gap)]
        entries = [Entry(": ".join(filter(None, texts)))]
        if has_paper:
            mark = DOUBLE_DAGGER * bool(claim.doubtful)
            texts = [claim.paper + mark, summary(claim.evidence("paper"), claim.paper_gap)]
            entries.append(Entry(": ".join(filter(None, texts))))
        layout.rows.append(([claim.says, claim.where], entries))
    verdicts = {claim.measured for claim in claims}
    papers = {claim.paper for claim in claims if has_paper}
    evidence = "\n".join(claim.measured_evidence for claim in claims)
    doubtful = doubts(claim.doubtful for claim in claims)
    rules = [MEASURED, BRACKETS if " [" in evidence else "", PAPER if has_paper else ""]
    crossed = CROSS in evidence or any(CROSS in claim.paper_evidence for claim in claims)
    notes = {
        " ".join(filter(None, rules)): True,
        TOO_FEW: NOT_ENOUGH in verdicts,
        f"{CROSS}: what does not hold.": crossed,
        f"{OPEN}: what is undecided.": f"{OPEN} " in evidence,
        f"{EQUAL}: an exact tie.": TIE in verdicts | papers,
        f"{DAGGER}: {tables.DIVERGED}": any(claim.diverged for claim in claims),
        "No value: the paper prints none, and none was taken from its authors' logs.": NO_PAPER
        in papers,
        f"{DOUBLE_DAGGER} doubtful: {doubtful}.": bool(doubtful),
        f"Scale {scale} is a cheaper version of the paper's runs: what is measured here proves "
        "nothing about the paper.": NOT_JUDGED in verdicts,
    }
    layout.notes.extend(note for note, is_needed in notes.items() if is_needed)
    return layout
