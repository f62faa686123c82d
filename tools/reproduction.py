"""`python -m tools.reproduction [STUDY ...]`: what the documents say of released runs.

With studies, the findings and tables of their pages docs/reproduction/STUDY.md. Without any, the
findings and counts of README.md, the picture of printed numbers, and docs/contradictions.md.
"""

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import seaborn
from pandas import DataFrame

from benchmarks.tables import NOTHING, put_section, table
from cohort.core.paths import CLAIMS_TABLE, RELEASED
from cohort.pipeline.stages import style_of
from cohort.plan.yaml_files import read_yaml
from cohort.records.record import Record
from cohort.results.claims.judged import HELD, NOT_HELD, TIE, JudgedClaim
from cohort.results.comparison import Result
from cohort.results.figures import theme
from cohort.results.names import Names
from cohort.results.release.folder import read_release
from cohort.results.statistics import ENOUGH_SEEDS, NOT_ENOUGH
from tools.findings import headlined
from tools.study import ROOT, compared_table, judged, markdown_tables, released

README, DOCS = ROOT / "README.md", ROOT / "docs"
PAGES = DOCS / "reproduction"
PICTURE = DOCS / "images/printed.png"
COMMAND = "python -m tools.reproduction"
NAMES = "AML", "PECO", "UCB", "FedEntOpt", "Stratify"
PAPERS = {name.lower(): name for name in NAMES}
TABLES = {  # those with printed numbers beside which there are enough seeds, and their titles
    "peco": {"tab2": "Table II"},
    "ucb": {"results": "results"},
    "fedentopt": {"tab1": "Table I", "tab2": "Table II", "tab3": "Table III", "tab6": "Table VI"},
    "stratify": {"tab1": "Table I"},
}
COLORS = {"agrees": "#009E73", "differs": "#000000", "cannot tell": "#BBBBBB"}  # of verdicts
MAX_FINDINGS = 5  # findings of the showdown in README.md
WAITING = f"| {NOT_ENOUGH} ("  # begins the cell of a claim with too few runs
PAPER = "| paper "  # begins a cell that has the paper's value only


def update_study(text: str, study: str) -> str:
    """Replace the findings and tables of a study's page by those of the study and of its released
    runs."""
    text = put_section(text, "findings", listed(study), f"{COMMAND} {study}")
    return put_section(text, "tables", section(study), f"{COMMAND} {study}")


def update_documents(printed: DataFrame) -> dict[Path, str]:
    """The text of README.md and of the page on contradictions, brought up to date, by file."""
    claims = {study: _judged(study) for study in PAPERS}
    sections = {
        README: {"showdown": _first_sentences("showdown"), "results": _summary(printed, claims)},
        DOCS / "contradictions.md": {"contradictions": _contradictions(claims)},
    }
    texts = {}
    for file, parts in sections.items():
        text = file.read_text(encoding="utf-8")
        for name, section_text in parts.items():
            text = put_section(text, name, section_text, COMMAND)
        texts[file] = text
    return texts


def listed(study: str) -> str:
    """A study's findings as a Markdown list."""
    findings = read_yaml(ROOT / "config/studies" / f"{study}.yaml")["findings"]
    return "\n".join(f"- {headlined(finding['text'])}" for finding in findings)


def _first_sentences(study: str) -> str:
    """The first two sentences of each of a study's first findings, as a Markdown list."""
    findings = listed(study).splitlines()[:MAX_FINDINGS]
    return "\n".join(re.split(r"(?<=\.) ", finding)[0] for finding in findings)


def section(study: str) -> str:
    """Markdown: how a study's released runs were made, its tables, and verdicts on its claims."""
    with released(study) as plan:
        texts = markdown_tables(plan, study)
    names = sorted(texts, key=lambda name: (name == CLAIMS_TABLE, name))
    tables = filter(None, (rows_with_runs(texts[name]) for name in names))
    return "\n\n".join([_provenance_text(study, read_release(ROOT / RELEASED / study)), *tables])


def _quotes(study: str) -> dict[str, dict[str, str]]:
    """Those claims of a study, as declared, that quote its paper, by name."""
    entries = read_yaml(ROOT / "config/studies" / f"{study}.yaml")["claims"]
    return {name: entry for name, entry in entries.items() if "quote" in entry}


def _judged(study: str) -> list[JudgedClaim]:
    """The verdicts by the released runs on those claims of a study that quote its paper."""
    quotes = _quotes(study)
    with released(study) as plan:
        return [claim for claim in judged(plan, study) if claim.claim in quotes]


def rows_with_runs(table: str) -> str:
    """Drop the rows of a Markdown table that wait for runs; empty if no other is in it."""
    lines = table.splitlines()
    with_runs = [line for line in lines if not _is_waiting(line)]
    rows = [line for line in with_runs if line.startswith("| ")]
    if len(rows) < 3:  # the header and the line below it
        return ""
    left_out = len(lines) - len(with_runs)
    note = [f"Rows that wait for runs are left out ({left_out})."] if left_out else []
    return "\n".join([*with_runs, *(["", *note] if note else [])])


def _is_waiting(row: str) -> bool:
    """Whether a row has no result of ours; below those the paper's are in the same cells."""
    return WAITING in row or (PAPER in row and f"<br>{PAPER[2:]}" not in row)


def _provenance_text(study: str, runs: Sequence[Record]) -> str:
    """A paragraph: how many runs were released, their cost, and how to see or train them again."""
    costs = [value for run in runs for _, value in run.history.cost["seconds"]]
    devices = Counter(device for run in runs for device in run.header["provenance"]["devices"])
    where = ", ".join(f"{count} on {device}" for device, count in devices.most_common())
    return (
        f"{len(runs)} released runs, {sum(costs) / 3600:.1f} core hours in all, {where}. "
        f"`cohort restore {study}` and `snakemake {study}` show them without training; "
        f"`cohort verify --released --config studies={study}` trains one of them again and compares."
    )


def printed_numbers() -> DataFrame:
    """The printed numbers for which we have enough seeds, the nearest to ours first: paper, whose
    method it is, table and settings in words, verdict, and in percent our mean, its 95 % interval
    and our mean less the printed number (`gap`)."""
    rows = []
    for study, tables in TABLES.items():
        with released(study) as plan:
            own = tuple(plan.study(study).methods)
            for name, title in tables.items():
                experiment = plan.study(study).tables[name]["experiment"]
                names = Names.of(style_of(plan, study, experiment))
                results = compared_table(plan, study, name).results
                results = [row for row in results if row.margin and row.sample.n >= ENOUGH_SEEDS]
                for result in results:
                    is_own = result.labels.get("strategy", own[0]).startswith(own)
                    words = ", ".join([title, *_words(result, results, names)])
                    values = result.sample.mean, *result.interval, result.difference
                    of = PAPERS[study], "own" if is_own else "baseline", words, result.verdict
                    rows.append([*of, *(100 * value for value in values)])
    columns = ["paper", "method", "words", "verdict", "ours", "low", "high", "gap"]
    return DataFrame(rows, columns=columns).sort_values("gap", key=abs, kind="stable")


def _words(result: Result, results: Sequence[Result], names: Names) -> list[str]:
    """What tells a result from the others of its table, in words, its strategy first."""
    labels = sorted(result.labels, key=lambda label: label != "strategy")
    values = {label: {row.labels[label] for row in results} for label in labels}
    varying = [label for label in labels if label == "strategy" or len(values[label]) > 1]
    noun, differ = "rounds" if "-" in result.at else "round", len({row.at for row in results}) > 1
    rounds = [f"{noun} {result.at}"] if differ else []
    return [*(names.phrase(label, result.labels[label]) for label in varying), *rounds]


def _counts(printed: DataFrame) -> list[str]:
    verdicts = Counter(printed["verdict"])
    return [str(len(printed)), *(str(verdicts[verdict]) for verdict in COLORS)]


def draw(printed: DataFrame) -> None:
    """Draw our numbers by the printed ones, a panel for each paper that has any."""
    theme.apply_theme()
    frame = printed[::-1].assign(printed=printed["ours"] - printed["gap"])  # the nearest on top
    panels = seaborn.relplot(
        frame,
        **{"x": "printed", "y": "ours", "col": "paper", "height": 1.75, "alpha": 0.85, "s": 24},
        **{"hue": "verdict", "hue_order": COLORS, "palette": COLORS, "style": "method"},
        **{"markers": {"own": "o", "baseline": "s"}, "col_order": map(PAPERS.get, TABLES)},
        **{"facet_kws": {"xlim": (0, 100), "ylim": (0, 100)}, "clip_on": False},
    )
    for paper, axes in panels.axes_dict.items():
        rows = frame[frame["paper"] == paper]
        axes.vlines(rows["printed"], rows["low"], rows["high"], "#666666", linewidth=0.8, zorder=1)
        axes.axline((0, 0), slope=1, color="#aaaaaa", linewidth=0.8, zorder=0)
    panels.set_titles("{col_name}").set_axis_labels("Printed (%)", "Ours (%)").savefig(PICTURE)


def _summary(printed: DataFrame, claims: Mapping[str, Sequence[JudgedClaim]]) -> str:
    """A table with a row for each paper: how its printed numbers compare with ours, and which of
    them is nearest and furthest; and a paragraph on claims."""
    rows = []
    for study, name in PAPERS.items():
        numbers = printed[printed["paper"] == name]
        gaps = [f"{number.gap:+.2f} ({number.words})" for number in numbers.itertuples()]
        row = [f"[{name}](docs/reproduction/{study}.md)", *_counts(numbers), *gaps[:1], *gaps[-1:]]
        rows.append([*row, *[NOTHING] * (7 - len(row))])
    titles = ["paper", "compared", *COLORS, "smallest gap", "largest gap"]
    all_claims = [claim for judged_ones in claims.values() for claim in judged_ones]
    measured = Counter(claim.measured for claim in all_claims)
    against = sum(claim.paper == NOT_HELD for claim in all_claims)
    undecided = len(all_claims) - measured[HELD] - measured[NOT_HELD] - measured[NOT_ENOUGH]
    total, agree, differ, unclear = _counts(printed)
    sentences = {entry["quote"] for study in claims for entry in _quotes(study).values()}
    return (
        f"Only a part has been run so far: of {total} printed numbers that can be compared, "
        f"{agree} agree with ours, {differ} differ, and for {unclear} the runs spread too much to "
        f"tell.\n\n{table(titles, rows)}\n\n"
        "We compare the printed numbers for which we have at least "
        f"{ENOUGH_SEEDS} seeds; the others have not been run. Intervals over seeds decide [whether "
        "they agree](docs/claims.md). Smallest and largest gap: our number minus the paper's, "
        f"in points. Of {len(all_claims)} claims in {len(sentences)} sentences of the papers, our runs "
        f"confirm {measured[HELD]}, refute {measured[NOT_HELD]} and leave {undecided} undecided; the "
        f"others have not been run. {against} of the {len(all_claims)} are [contradicted by their "
        "own paper's numbers](docs/contradictions.md)."
    )


def _contradictions(claims: dict[str, list[JudgedClaim]]) -> str:
    items, ties = [], []
    for study, judged_ones in claims.items():
        ties += [f"`{study}.{claim.claim}`" for claim in judged_ones if claim.paper == TIE]
        entries = _quotes(study)
        for name in (claim.claim for claim in judged_ones if claim.paper == NOT_HELD):
            entry = entries[name]
            items.append(
                f"- **`{study}.{name}`**, {entry['where']}: “{entry['quote']}”\n"
                f"  *Numbers:* {entry['against']}\n  *Reading:* {entry['reading']}"
            )
    note = f"In {' and '.join(ties)} only a tie of printed numbers speaks against the claim."
    return "\n".join([*items, "", note])


def main(studies: Sequence[str]) -> None:
    """Bring the pages of these studies, or those on all papers, up to date."""
    texts = {
        page: update_study(page.read_text(encoding="utf-8"), page.stem)
        for page in (PAGES / f"{study}.md" for study in studies)
    }
    if not studies:
        printed = printed_numbers()
        draw(printed)
        texts = update_documents(printed)
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
