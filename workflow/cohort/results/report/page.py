"""Writes a study's page, one self-contained HTML file, its card, and the index of all cards.

A page opens with the study's findings and its key figure; then come its figures and tables, under
the numbers that their paper gives them, what has too few runs for them, and the claims with their
verdicts. The HTML is in `templates/`.
"""

import base64
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cohort.core import user_files
from cohort.core.files import write_text
from cohort.core.paths import CELL_FOLDERS
from cohort.core.text import counted, duration_text
from cohort.results import series, statistics
from cohort.results.claims import judged
from cohort.results.comparison import Comparison
from cohort.results.figures import KINDS
from cohort.results.names import METRICS, Names
from cohort.results.series import NO_RUNS, STATUSES
from cohort.results.tables.tabulate import lay_out_table, rounded

Spec = Mapping[str, Any]
ItemView = dict[str, Any]
"""What a template shows of a figure or table: a picture (`image`, of a `width` in pixels) or a
`table`, or neither if there are too few runs."""

CellSummary = dict[str, Any]
FIGURE = re.compile(r"fig0*(\d+)")
SEPARATOR, EQUALS = " · ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
CONTRADICTED = "Contradicted by the paper's own numbers"
REFUTED = "Contradicted by our runs"
OTHERS = "Not contradicted"
WAITING = "Without enough runs"
HEADINGS = (CONTRADICTED, REFUTED, OTHERS, WAITING)
SIDES = {"paper": "paper's numbers", "ours": "our runs"}
PAPERS = "the paper's own numbers"
PIXELS = 0.54  # of the page for a pixel of a picture, so that text has one size in all of them
PREVIEWS = "../partial/report"  # from the folder of the pages
ADDRESS, BOLD = r"(https://[^\s()<>]*[^\s()<>.,;:])", r"\*\*(.+?)\*\*"
CLASSES = {
    **{"held": "good", "not held": "bad", "undecided": "open", "tie": "open"},
    **{"leans towards held": "good leans", "leans towards not held": "bad leans"},
}


def render(template: str, **content: Any) -> str:
    """Fill a template of the report with this content; return its HTML."""
    environment = Environment(
        loader=PackageLoader("cohort.results.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    marks = judged.MARKS | dict.fromkeys(judged.HOLDS, "✓")
    environment.globals |= {"marks": marks, "classes": CLASSES, "WAITING": WAITING}
    environment.filters |= {"duration": duration_text, "counted": counted}
    environment.filters["linked"] = lambda text: _tagged(text, ADDRESS, '<a href="{0}">{0}</a>')
    environment.filters["bold"] = lambda text: _tagged(text, BOLD, "<strong>{}</strong>")
    return environment.get_template(template).render(**content)


def _tagged(text: str, pattern: str, html: str) -> Markup:
    """The text as HTML, with this HTML around what the pattern's group matches."""
    parts = enumerate(re.split(pattern, text))
    return Markup("").join(
        Markup(html).format(part) if index % 2 else part for index, part in parts
    )


def links(files: Iterable[str | Path], folder: Path) -> list[tuple[str, str]]:
    """The relative URL of each file but pictures for phones, and its format."""
    paths = [Path(os.path.relpath(file, folder)) for file in files]
    paths = [path for path in paths if not path.stem.endswith("-narrow")]
    return [(quote(path.as_posix()), path.suffix.removeprefix(".")) for path in paths]


def first_with_suffix(files: Iterable[str | Path], suffix: str) -> Path:
    """The first of the files with this suffix, such as `.png`."""
    return next(Path(file) for file in files if Path(file).suffix == suffix)


class StudyRuns:
    """The runs of a study's experiments, each once."""

    def __init__(self, experiments: Mapping[str, Mapping[str, Any]], names: Names):
        self._names = names
        self.experiments: dict[str, list[CellSummary]] = {}
        self.cells: dict[str, CellSummary] = {}
        self._estimates: dict[str, float] = {}
        for name, spec in experiments.items():
            cells = series.read_experiment(spec["runs"])["cells"]
            self.experiments[name] = [cell | {"labels": texts(cell["labels"])} for cell in cells]
            self.cells |= {cell["digest"]: cell for cell in cells}
            self._estimates |= spec["seconds"]

    def coverage(self, *experiments: str) -> dict[str, Any]:
        """The runs of these experiments together, or of all, by status, the seconds that they took,
        those estimated for the rest, and sentences on what was restored and on changed files."""
        names = experiments or tuple(self.experiments)
        cells = {cell["digest"]: cell for name in names for cell in self.experiments[name]}
        runs = series.status_counts(cell["status"] for cell in cells.values())
        waiting = [key for key, cell in cells.items() if cell["status"] in STATUSES[2:]]
        spent = sum(cell.get("seconds", 0.0) for cell in cells.values())
        to_go = sum(self._estimates.get(digest, 0.0) for digest in waiting)
        restored = series.restored_sentences(cells.values())
        versions = (cell.get("my", {}) for cell in cells.values())
        changed = user_files.changed_sentences(map(user_files.files_changed_since, versions))
        counts = {"runs": runs, "phrase": series.runs_phrase(runs)}
        return counts | {"spent": spent, "to_go": to_go, "restored": restored, "changed": changed}

    def finished(self) -> list[CellSummary]:
        """The cells that have a record."""
        return [cell for cell in self.cells.values() if "settings" in cell]

    def anchor(self, experiment: str, labels: Mapping[str, str]) -> str:
        """The anchor of the group with these label values; empty if none of its runs is done."""
        for cell in self.experiments.get(experiment, []):
            fits = all(cell["labels"].get(name, value) == value for name, value in labels.items())
            if fits and cell["digest"] in self._group_of:
                return self._group_of[cell["digest"]]
        return ""

    @cached_property
    def _group_of(self) -> dict[str, str]:
        """The first digest of each run's group."""
        pairs = ((run, group["runs"][0]) for group in self.groups for run in group["runs"])
        return {run["digest"]: first["digest"] for run, first in pairs}

    @cached_property
    def common(self) -> dict[str, str]:
        """The settings that all finished runs have, as text."""
        first, *others = [texts(cell["settings"]) for cell in self.finished()] or [{}]
        shared = set(first.items()).intersection(*(settings.items() for settings in others))
        return {key: value for key, value in first.items() if (key, value) in shared}

    @cached_property
    def groups(self) -> list[dict[str, Any]]:
        """The groups of finished runs that differ in their seed only, to which the numbers on the
        page lead, those of one name together; `varying` are the settings, besides those in its
        name, that not every run of the study has."""
        by_settings: dict[tuple[tuple[str, str], ...], list[CellSummary]] = {}
        for cell in self.finished():
            settings = texts(cell["settings"]) | {"seed": ""}
            by_settings.setdefault(tuple(sorted(settings.items())), []).append(cell)
        groups: dict[str, list[dict[str, Any]]] = {}
        for items, cells in by_settings.items():
            settings, shared = dict(items), {*CELL_FOLDERS, *self.common}
            name = SEPARATOR.join(self._names.value(key, settings[key]) for key in CELL_FOLDERS)
            varying = {key: value for key, value in items if value and key not in shared}
            runs = sorted(cells, key=lambda cell: cell["settings"]["seed"])
            groups.setdefault(name, []).append({"name": name, "varying": varying, "runs": runs})
        return list(itertools.chain(*groups.values()))


def write_page(spec: Spec, outputs: Sequence[str | Path]) -> None:
    """Write the page of a study to the first output, and its card as JSON to the second."""
    page, card_file = map(Path, outputs)
    runs = StudyRuns(spec["experiments"], Names(titles=spec["titles"]))
    claims = page_claims(spec) if spec["claims"] else None
    items = page_items(spec, runs, page.parent)
    card, cells = _card(spec, runs, claims), runs.finished()
    provenance = {
        "Device": Counter(", ".join(cell["devices"]) for cell in cells),
        "Trainer": Counter(cell["trainer"] for cell in cells),
        "Commit": Counter(cell["commit"] for cell in cells),
        "Versions": Counter(", ".join(map(" ".join, cell["versions"].items())) for cell in cells),
    }
    html = render(
        "page.html.j2",
        spec=spec,
        card=card,
        claims=claims,
        claims_links=links(spec["claims"], page.parent),
        **items,
        to_go=runs.coverage(*(item["experiment"] for item in items["waiting"]))["to_go"],
        runs=runs,
        provenance=[(title, count.most_common()) for title, count in provenance.items() if count],
    )
    write_text(page, html)
    write_text(card_file, json.dumps(card))


def _card(spec: Spec, runs: StudyRuns, claims: Spec | None) -> dict[str, Any]:
    """The card of a study, plain data that the index shows of it."""
    coverage, finished = runs.coverage(), runs.finished()
    return {
        **{key: spec[key] for key in ("name", "title", "question", "source", "scale", "command")},
        "finding": next(iter(spec["findings"]), ""),
        "left_out": spec["notes"],
        **coverage,
        "verdicts": claims["totals"] if claims else [],
        "date": max((cell["started"][:10] for cell in finished), default=""),
        "commits": list(dict(Counter(cell["commit"] for cell in finished).most_common())),
    }


def texts(labels: Mapping[str, Any]) -> dict[str, str]:
    """Labels or settings as text, with nested ones as `selector.buffer`."""
    flat: dict[str, str] = {}
    for name, value in labels.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": text for key, text in texts(value).items()}
        else:
            flat[name] = series.label_text(value)
    return flat


def page_items(spec: Spec, runs: StudyRuns, folder: Path) -> dict[str, Any]:
    """The key figure of a page, the sections of its other figures and of its tables, and the items
    without enough runs, cheapest first; URLs are relative to a folder. The notes of a section are
    those that several of its tables share."""
    figures = [_figure(item, spec, runs, folder) for item in spec["figures"]]
    tables = [_item(item, spec, runs, folder) for item in spec["tables"]]
    for view, item in zip(tables, spec["tables"], strict=True):
        table = page_table(item)
        view["table"] = table if table["rows"] else None
    waiting = [item for item in (*figures, *tables) if not (item["image"] or item["table"])]
    figures = [figure for figure in figures if figure["image"]]
    tables = [table for table in tables if table["table"]]
    named = [figure for figure in figures if figure["id"] == spec["key_figure"]]
    key = next(iter([*named, *figures]), None)
    counts = Counter(note for table in tables for note in table["table"]["notes"])
    notes = [note for note, count in counts.items() if count > 1]
    figures = [figure for figure in figures if figure is not key]
    sections = [
        {"id": "figures", "title": "Figures", "entries": figures, "notes": []},
        {"id": "tables", "title": "Tables", "entries": tables, "notes": notes},
    ]
    return {
        "key_figure": key,
        "sections": [section for section in sections if section["entries"]],
        "waiting": sorted(waiting, key=lambda item: item["coverage"]["to_go"]),
    }


def alternative_text(item: Spec, comparison: Comparison) -> str:
    """A picture's alternative text: its title, and the means that a plain single panel shows."""
    kind, names = KINDS[item["kind"]].from_spec(item), Names.of(item["style"])
    metric, title = METRICS[kind.metric], str(item["title"]).rstrip(".")
    unusual = ("buckets", "smoothing", "errors", "until")
    is_plain = item["kind"] != "interval" and not any(key in item for key in unusual)
    means = [
        f"{names.value(kind.hue, result.labels[kind.hue])} {rounded(result.sample.mean, metric)}"
        for result in (comparison.results if is_plain and kind.labels() == (kind.hue,) else ())
        if result.metric == kind.metric and result.values
    ]
    return f"{title}. Means of {metric.label}: {'; '.join(means)}." if means else f"{title}."


def png_url(picture: bytes) -> str:
    """A picture as a URL that a page can hold."""
    return f"data:image/png;base64,{base64.b64encode(picture).decode()}"


def _figure(item: Spec, spec: Spec, runs: StudyRuns, folder: Path) -> ItemView:
    """A figure, with its picture if it was drawn."""
    view, file = _item(item, spec, runs, folder), first_with_suffix(item["files"], ".png")
    if file.exists():
        picture = file.read_bytes()
        view["image"] = png_url(picture)
        view["narrow"] = png_url(file.with_stem(f"{file.stem}-narrow").read_bytes())
        view["width"] = round(PIXELS * int.from_bytes(picture[16:20]))
        view["alt"] = alternative_text(item, Comparison.read(file.with_suffix(".json")))
    return view


def _item(item: Spec, spec: Spec, runs: StudyRuns, folder: Path) -> ItemView:
    """The content of a page's item that figures and tables have in common."""
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


def page_table(item: Spec) -> dict[str, Any]:
    """Read a table from the JSON file of its comparison; lay out its rows that have runs."""
    layout = lay_out_table(item, Comparison.read(first_with_suffix(item["files"], ".json")))
    rows = [row for row in layout.rows if any(map(attrgetter("has_runs"), row[1]))]
    if left_out := len(layout.rows) - len(rows):
        layout.notes.insert(0, f"{counted(left_out, 'row')} without runs left out.")
    layout = replace(layout, rows=rows).condensed()
    return {
        "head": SEPARATOR.join(layout.heads),
        "columns": layout.columns,
        "rows": [
            (SEPARATOR.join(words).replace(" = ", EQUALS), entries)
            for words, entries in layout.rows
        ],
        "everywhere": layout.everywhere,
        "notes": layout.notes,
    }


def page_claims(spec: Spec) -> dict[str, Any]:
    """Read the claims of a page from the JSON file that `write_judged` writes: how many have each
    verdict, held first, then not held and the unclear ones; how verdicts come about; and the claims
    below headings, with the verdicts to show and what they `quotes` of their paper."""
    groups: dict[str, list[dict[str, Any]]] = {heading: [] for heading in HEADINGS}
    counts: dict[str, Counter[str]] = {PAPERS: Counter(), SIDES["ours"]: Counter()}
    for claim in judged.read_judged(first_with_suffix(spec["claims"], ".json")):
        has_none = claim.measured == statistics.NOT_ENOUGH and not claim.n
        measured = NO_RUNS if has_none else claim.measured
        counts[PAPERS][claim.paper] += 1
        counts[SIDES["ours"]][measured] += 1
        by_side = {SIDES["paper"]: claim.paper, SIDES["ours"]: measured}
        hidden = (judged.NO_PAPER, NO_RUNS, judged.NOT_JUDGED)  # which the totals say once
        parts = [part for comparison in claim.comparisons for part in comparison["sides"].values()]
        heading = OTHERS
        if claim.paper == judged.NOT_HELD:
            heading = CONTRADICTED
        elif claim.measured in (judged.NOT_HELD, judged.LEANS_NOT_HELD):
            heading = REFUTED
        elif claim.measured in (statistics.NOT_ENOUGH, judged.NOT_JUDGED):
            heading = WAITING
        groups[heading].append(
            {
                "judged": claim,
                "quotes": spec["quotes"][claim.claim],
                "verdicts": [pair for pair in by_side.items() if pair[1] not in hidden],
                "has_numbers": any(number["mean"] for part in parts for number in part["numbers"]),
            }
        )
    notes = [f"{judged.MEASURED} {judged.BRACKETS}", judged.PAPER, judged.TOO_FEW]
    if counts[PAPERS].keys() <= {judged.NO_PAPER}:
        del counts[PAPERS], notes[1]
    totals = []
    for side, verdicts in counts.items():
        ordered = dict.fromkeys([*judged.SHOWN_ORDER, *sorted(verdicts)])
        totals.append((side, [(key, verdicts[key]) for key in ordered if key in verdicts]))
    shown = [group for group in groups.items() if group[1]]
    return {"totals": totals, "notes": notes, "groups": shown}


def write_index(output: str | Path, releases: Sequence[tuple[str, str, int]] = ()) -> None:
    """Write the index of the pages in its folder, from their cards, those with the most finished
    runs first; leave it if nothing changed. A study without a page is shown by its preview.
    `releases` have a study's name, the name of the file of its released runs, and their number."""
    output = Path(output)
    cards = {}
    for prefix in (f"{PREVIEWS}/", ""):
        for file in (output.parent / prefix).glob("*.json"):
            if file.with_suffix(".html").exists():
                card = json.loads(file.read_text(encoding="utf-8"))
                card["is_preview"] = file.parents[1].name == "partial"
                cards[card["name"]] = f"{prefix}{card['name']}.html", card
    ordered = sorted(cards.values(), key=lambda card: (-card[1]["runs"]["done"], card[1]["name"]))
    html = render("index.html.j2", cards=ordered, releases=releases)
    if not output.exists() or output.read_text(encoding="utf-8") != html:
        write_text(output, html)
