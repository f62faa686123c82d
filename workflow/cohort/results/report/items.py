"""What a page shows of a study: its figures and tables, under the numbers that their paper gives
them, and its claims with their verdicts."""

from __future__ import annotations

import base64
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cohort.results.claims import judged
from cohort.results.claims.judged import NOT_HELD, JudgedClaim
from cohort.results.comparison import Comparison
from cohort.results.figures import KINDS
from cohort.results.intervals import NOT_ENOUGH
from cohort.results.names import METRICS, Names
from cohort.results.report.render import links, with_suffix
from cohort.results.report.runs import StudyRuns
from cohort.results.series import NO_RUNS
from cohort.results.tables.tabulate import lay_out_table

Spec = Mapping[str, Any]
Item = dict[str, Any]
"""What a template shows of a figure or table: a picture (`image`) or a `table`, or neither if there
is nothing to show yet."""

FIGURE = re.compile(r"fig0*(\d+)")
SEPARATOR, EQUALS = " · ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
CONTRADICTED = "Contradicted by the paper's own numbers"
REFUTED = "Contradicted by our runs"
OTHERS, ALL = "All other claims", "All claims"
SIDES = {"paper": "paper's numbers", "ours": "our runs"}


def sections(spec: Spec, runs: StudyRuns, folder: Path) -> list[dict[str, Any]]:
    """The sections of a page that are not empty: tables and figures; URLs are relative to a folder.
    The notes of a section are those that several of its tables share."""
    tables = [_item(item, spec, runs, folder) for item in spec["tables"]]
    for shown, item in zip(tables, spec["tables"], strict=True):
        table = shown_table(item)
        shown["table"] = table if table["columns"] else None
    figures = [_item(item, spec, runs, folder) for item in spec["figures"]]
    for shown, item in zip(figures, spec["figures"], strict=True):
        if shown["coverage"].runs.missing < shown["coverage"].runs.planned:
            picture = base64.b64encode(with_suffix(item["files"], ".png").read_bytes()).decode()
            comparison = Comparison.read(with_suffix(item["files"], ".json"))
            shown["image"] = f"data:image/png;base64,{picture}"
            shown["seen"] = alternative_text(item, comparison)
    counts = Counter(note for it in tables if it["table"] for note in it["table"]["notes"])
    notes = [note for note, count in counts.items() if count > 1]
    shown_sections = [
        {"id": "tables", "title": "Tables", "noun": "table", "entries": tables, "notes": notes},
        {"id": "figures", "title": "Figures", "noun": "figure", "entries": figures, "notes": []},
    ]
    return [section for section in shown_sections if section["entries"]]


def key_figure(spec: Spec, shown: Sequence[Mapping[str, Any]]) -> Item | None:
    """The picture that opens the page: of the figure that the study names, or else of the first
    one; None if no figure has a picture."""
    figures = [item for section in shown for item in section["entries"] if item["image"]]
    chosen = [item for item in figures if item["id"] == spec["key_figure"]]
    return next(iter([*chosen, *figures]), None)


def alternative_text(item: Spec, comparison: Comparison) -> str:
    """A picture's alternative text: its title and the mean of each value of its hue."""
    kind, names = KINDS[item["kind"]].from_spec(item), Names.of(item["look"])
    metric, texts = METRICS[kind.metric], [str(item["title"]).rstrip(".")]
    values: defaultdict[str, list[float]] = defaultdict(list)
    for result in comparison.results:
        if result.metric == kind.metric and kind.hue in result.labels:
            values[result.labels[kind.hue]] += result.values.values()
    means = [
        f"{names.value(kind.hue, value)} {metric.scale * sum(runs) / len(runs):.{metric.digits}f}"
        for value, runs in values.items()
        if runs
    ]
    if means:
        texts.append(f"Means of {metric.label}: {'; '.join(means)}")
    return ". ".join(texts) + "."


def _item(item: Spec, spec: Spec, runs: StudyRuns, folder: Path) -> Item:
    """What figures and tables share."""
    figure = FIGURE.fullmatch(item["name"]) if spec["source"] else None
    number = f"Fig. {figure[1]}: " if figure else ""  # fig05 of a paper is its Fig. 5
    return {
        **{key: item[key] for key in ("caption", "command", "experiment")},
        "id": item["name"],
        "heading": f"{number}{item['title']}",
        "links": links(item["files"], folder),
        "coverage": runs.coverage(item["experiment"]),
        "image": "",
        "table": None,
    }


def shown_table(item: Spec) -> dict[str, Any]:
    """Read an item's table from the JSON file that `tabulate` writes; lay it out for the page."""
    layout = lay_out_table(item, Comparison.read(with_suffix(item["files"], ".json")))
    return {
        "head": SEPARATOR.join(layout.heads),
        "columns": layout.columns,
        "lines": [
            (SEPARATOR.join(words).replace(" = ", EQUALS), entries)
            for words, entries in layout.lines
        ],
        "everywhere": layout.everywhere,
        "notes": layout.notes,
    }


def page_claims(spec: Spec) -> dict[str, Any]:
    """Read the claims of a page from the JSON file that `write_judged` writes: how many have each
    verdict, how verdicts come about, and the claims below headings, contradicted ones first."""
    claims = judged.read_judged(with_suffix(spec["claims"], ".json"))
    totals = [(SIDES["ours"], _verdict_counts(map(_our_verdict, claims)))]
    notes = [f"{judged.MEASURED} {judged.BRACKETS}", judged.TOO_FEW]
    if has_paper := any(claim.paper != judged.NO_PAPER for claim in claims):
        papers = _verdict_counts(claim.paper for claim in claims)
        totals.insert(0, ("the paper's own numbers", papers))
        notes.insert(1, judged.PAPER)
    groups: dict[str, list[dict[str, Any]]] = {CONTRADICTED: [], REFUTED: [], OTHERS: []}
    for claim in claims:
        is_refuted = claim.measured in (NOT_HELD, judged.LEANS_NOT_HELD)
        heading = CONTRADICTED if claim.paper == NOT_HELD else REFUTED if is_refuted else OTHERS
        groups[heading].append(_claim(claim, spec["quotes"][claim.claim], has_paper))
    shown = [(heading, group) for heading, group in groups.items() if group]
    if [heading for heading, _ in shown] == [OTHERS]:
        shown = [(ALL, groups[OTHERS])]
    return {"totals": totals, "notes": notes, "groups": shown}


def _verdict_counts(verdicts: Iterable[str]) -> list[tuple[str, int]]:
    """Count the claims with each verdict: held first, then not held and the unclear ones."""
    counts = Counter(verdicts)
    ordered = dict.fromkeys([*judged.SHOWN_ORDER, *sorted(counts)])
    return [(verdict, counts[verdict]) for verdict in ordered if verdict in counts]


def _our_verdict(claim: JudgedClaim) -> str:
    """The verdict by our runs, or NO_RUNS if there are none."""
    return NO_RUNS if claim.measured == NOT_ENOUGH and not claim.n else claim.measured


def _claim(claim: JudgedClaim, quotes: Spec, has_paper: bool) -> dict[str, Any]:
    """A claim with the verdicts to show. Its `quotes` have the paper's sentence (`quote`), the
    paper's own numbers where they contradict it (`against`), and what to make of them
    (`reading`)."""
    ours = _our_verdict(claim)
    verdicts = [(SIDES["paper"], claim.paper)] if has_paper else []
    if ours not in (NO_RUNS, judged.NOT_JUDGED):  # which the totals say once
        verdicts.append((SIDES["ours"], ours))
    lacks_seeds = bool(claim.gap) and claim.measured in judged.SHOWN_ORDER
    notes = {
        f"Our runs: {claim.gap}.": claim.gap and claim.n and not lacks_seeds,
        f"Paper: {claim.paper_gap}.": claim.paper_gap,
        f"{claim.diverged} runs diverged and count with the worst value.": claim.diverged,
        f"Doubtful: {claim.doubtful}.": claim.doubtful,
    }
    parts = [part for comparison in claim.comparisons for part in comparison.sides.values()]
    return {
        "judged": claim,
        "quotes": quotes,
        "verdicts": verdicts,
        "lacks_seeds": lacks_seeds,  # which is said above the numbers
        "notes": [note for note, is_needed in notes.items() if is_needed],
        "counts": hold_counts(claim),
        "has_numbers": any(numbers.mean for part in parts for numbers in part.numbers),
    }


def hold_counts(claim: JudgedClaim) -> list[str]:
    """Sentences on how many comparisons hold: by the paper's numbers, and in our runs."""
    counts, total = [], len(claim.comparisons)
    for side, whose in SIDES.items():
        sides = [it.sides[side].verdict for it in claim.comparisons if side in it.sides]
        if verdicts := list(filter(None, sides)):
            rest = total - len(verdicts)
            hold = sum(verdict in judged.HOLDS for verdict in verdicts)
            lacking = f", {rest} without a verdict" if rest else ""
            counts.append(f"{whose}: {hold} of {total} hold{lacking}")
    return counts
