"""Writes a study's page, one self-contained HTML file, and its card for the index.

The HTML is in `templates/`; this package gathers what the templates show.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cohort.core.files import write_text
from cohort.results.names import Names
from cohort.results.report import items
from cohort.results.report.render import links, render
from cohort.results.series import GENERATED

Spec = Mapping[str, Any]


def write_page(spec: Spec, outputs: Sequence[str | Path]) -> None:
    """Write the page of a study to the first output, and its card as JSON to the second."""
    page, card_file = map(Path, outputs)
    names = Names(orders={}, titles={key: dict(value) for key, value in spec["titles"].items()})
    runs = items.StudyRuns(spec["experiments"], names)
    claims = items.page_claims(spec) if spec["claims"] else None
    shown = items.sections(spec, runs, page.parent)
    card = _card(spec, runs, claims)
    html = render(
        "page.html.j2",
        spec=spec,
        card=card,
        claims=claims,
        claims_links=links(spec["claims"], page.parent),
        sections=shown,
        key_figure=items.key_figure(spec, shown),
        runs=runs,
        experiments=[(name, runs.coverage(name)) for name in runs.experiments],
        made=_provenance_counts(runs),
        generated=GENERATED if card["generated"] else "",
    )
    write_text(page, html)
    write_text(card_file, json.dumps(card))


def _provenance_counts(runs: items.StudyRuns) -> list[tuple[str, list[tuple[str, int]]]]:
    """Count runs by device, trainer, commit and versions."""
    cells = runs.finished()
    counts = {
        "Device": Counter(", ".join(cell["devices"]) for cell in cells),
        "Trainer": Counter(cell["trainer"] for cell in cells),
        "Commit": Counter(cell["commit"] for cell in cells),
        "Versions": Counter(", ".join(map(" ".join, cell["versions"].items())) for cell in cells),
    }
    return [(title, count.most_common()) for title, count in counts.items() if count]


def _card(spec: Spec, runs: items.StudyRuns, claims: Spec | None) -> dict[str, Any]:
    """The card of a study, plain data that the index shows of it."""
    coverage, finished = runs.coverage(), runs.finished()
    return {
        **{key: spec[key] for key in ("name", "title", "question", "source", "scale", "command")},
        "left_out": spec["notes"],
        "runs": asdict(coverage.runs),
        "phrase": coverage.runs.phrase,
        "restored": coverage.restored,
        "spent": coverage.spent,
        "to_go": coverage.to_go,
        "verdicts": claims["totals"] if claims else [],
        "date": max((cell["started"][:10] for cell in finished), default=""),
        "commits": list(dict(Counter(cell["commit"] for cell in finished).most_common())),
        "generated": any(cell.get("generated") for cell in runs.cells.values()),
    }
