"""`python -m benchmarks.readme`: the tables of README.md whose numbers were measured.

Each is worked out from committed results (`resources/released`, `resources/paper_values`, `docs/performance.md`,
`docs/contradictions.md`, `docs/claims-list.md`, the findings of studies) and written between its two markers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import yaml

from benchmarks.page import put_section
from benchmarks.peers import ROOT
from benchmarks.tables import NOTHING, table
from cohort.results.at import at_in_words
from cohort.results.comparison import Result
from cohort.results.intervals import ENOUGH_SEEDS
from tools.reproduction import comparison, listed

README = ROOT / "README.md"
PERFORMANCE = ROOT / "docs" / "performance.md"
NAMES = {"fedentopt": "FedEntOpt", "stratify": "Stratify", "peco": "PECO", "ucb": "UCB"}
TABLES = (
    ("fedentopt", "tab1", "FedEntOpt, Table I: CIFAR-10, LeNet-5"),
    ("stratify", "tab1", "Stratify, Table I: MNIST"),
    ("peco", "tab2", "PECO, Table II: CNN"),
    ("ucb", "results", "UCB, results"),
)
VERDICTS = ("agrees", "differs", "cannot tell")
FRAMEWORKS = {
    "ours": "Cohort, a process on each core",
    "ours, one process": "Cohort, one process",
    "plain loop": "plain PyTorch loop",
    "Flower": "Flower",
    "pfl": "pfl-research",
    "FedLab": "FedLab",
    "BlazeFL": "BlazeFL",
}
SECONDS = "median s/round"
COLUMNS = {
    "W1": (SECONDS, "memory, MB"),
    "W2": (SECONDS, "clients/s", "steps/s", "memory, MB"),
    "W2b": ("clients/s",),
}
BOARDS = ("digits", "Fashion-MNIST")


def agreements() -> str:
    """Markdown: for each table, and apart for the paper's own method and for others, how the printed
    numbers that have enough released seeds compare with ours."""
    titles = ["source", "numbers of", "printed", *VERDICTS, "ours higher", "nearest", "furthest"]
    return table(titles, [row for source in TABLES for row in _agreements(*source)])


def _agreements(study: str, name: str, title: str) -> Iterator[list[str]]:
    methods = tuple(_study(study)["methods"])
    results = [
        result
        for result in comparison(study, name).results
        if result.agreement and result.sample.n >= ENOUGH_SEEDS
    ]
    for is_own, whose in ((True, "its own method"), (False, "others")):
        group = [r for r in results if r.labels["strategy"].startswith(methods) == is_own]
        group.sort(key=lambda result: abs(result.difference))
        verdicts = Counter(result.verdict for result in group)
        counts = [
            len(group),
            *(verdicts[verdict] for verdict in VERDICTS),
            sum(result.difference > 0 for result in group),
        ]
        ends = (f"{100 * r.difference:+.2f} ({_cell(r, group)})" for r in (group[0], group[-1]))
        yield [title, whose, *map(str, counts), *ends]


def _cell(result: Result, group: Sequence[Result]) -> str:
    """What tells a result from the others of its group."""
    cells = [other.labels | {"at": at_in_words(other.at)} for other in group]
    own = result.labels | {"at": at_in_words(result.at)}
    return ", ".join(own[label] for label in own if len({cell[label] for cell in cells}) > 1)


def measured() -> str:
    """Markdown: how printed values and ours compare, what the released runs show, and the claims that
    contradict themselves."""
    findings = "\n\n".join(f"**{name}**\n\n{listed(study)}" for study, name in NAMES.items())
    docs = ROOT / "docs"
    contradicted = re.findall(r"^- \*\*`", (docs / "contradictions.md").read_text(), re.MULTILINE)
    (totals,) = re.findall(r"^\| all .*\|$", (docs / "claims-list.md").read_text(), re.MULTILINE)
    sentences, claims, *_, held, not_held, undecided = re.findall(r"\d+", totals)
    return (
        f"{agreements()}\n\nNumbers printed beside at least {ENOUGH_SEEDS} seeds of ours; differences are ours less "
        f"the printed ones, in points.\n\n{findings}\n\n"
        f"Cohort judges {claims} claims, from {sentences} sentences of the papers and a few questions of our own "
        f"([all of them](docs/claims-list.md)). {len(contradicted)} are contradicted by "
        "[their own paper's numbers](docs/contradictions.md). By the released runs "
        f"{held} hold, {not_held} do not, and {undecided} are undecided; the others wait for runs."
    )


def showdown() -> str:
    """Markdown: the findings of the showdown, then the ranks and accuracies of the leaderboards of
    docs/showdown.md, side by side."""
    page = (ROOT / "docs" / "showdown.md").read_text()
    line = r"^\| (\d+ \[.*?\]|-) +\| ([\d.]+) +\| (.*?) +\| ([\d.]+)"
    boards: list[dict[str, list[str]]] = []
    for rank, mean_rank, selector, accuracy in re.findall(line, page, re.MULTILINE):
        if not boards or selector in boards[-1]:
            boards.append({})
        boards[-1][selector] = [rank, mean_rank, accuracy]
    titles = [cell for name in BOARDS for cell in (f"{name}, rank", "mean rank", "%")]
    rows = [
        [selector, *(cell for board in boards for cell in board[selector])]
        for selector in boards[0]
    ]
    return f"{listed('showdown')}\n\n{table(['selector', *titles], rows)}"


def _study(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "config" / "studies" / f"{name}.yaml").read_text()))


def speed() -> str:
    """Speed and memory of each framework's fastest variant, as docs/performance.md has them."""
    page = PERFORMANCE.read_text()
    measured = {part: _fastest(page, part) for part in COLUMNS}
    titles = [(part, title) for part in COLUMNS if measured[part] for title in COLUMNS[part]]
    rows = []
    for name, framework in FRAMEWORKS.items():
        cells = [measured[part].get(name, {}).get(title, NOTHING) for part, title in titles]
        if set(cells) != {NOTHING}:
            rows.append([framework, *cells])
    heads = ["", *(f"{part}, {title.split()[-1]}" for part, title in titles)]
    return f"{table(heads, rows)}\n\n{_when_measured(page, dict(titles))}"


def _when_measured(page: str, parts: Iterable[str]) -> str:
    """Sentences on the day on which each part was measured, and with which peers."""
    lines = {
        part: re.findall(r"^Measured (\S+) .*Peers: (.*)\.$", _section(page, part), re.MULTILINE)[0]
        for part in parts
    }
    peers = dict.fromkeys(peer for _, named in lines.values() for peer in named.split("; "))
    days = ", ".join(f"{part} on {day}" for part, (day, _) in lines.items())
    return f"Measured: {days}. Versions: {'; '.join(peers)}."


def _section(page: str, part: str) -> str:
    return page.partition(f"<!-- {part}: ")[2].partition(f"<!-- end of {part} ")[0]


def _fastest(page: str, part: str) -> dict[str, dict[str, str]]:
    """The row of each variant by its title, and the fastest of a framework by the title's start."""
    section = _section(page, part)
    lines = [line.strip("| ").split("|") for line in section.splitlines() if line.startswith("| ")]
    titles, *rows = [[cell.strip() for cell in line] for line in lines] or [[]]
    fastest: dict[str, dict[str, str]] = {}
    for row in rows:
        if len(row) == len(titles) and row[1][0].isdigit():
            cells = dict(zip(titles, row, strict=True))
            for name in (row[0], row[0].partition(", ")[0]):
                other = fastest.setdefault(name, cells)
                if float(cells[SECONDS]) < float(other[SECONDS]):
                    fastest[name] = cells
    return fastest


def update(text: str) -> str:
    """Replace the tables between the markers of README's text by today's."""
    for name, made in (("showdown", showdown()), ("results", measured()), ("speed", speed())):
        text = put_section(text, name, made, "python -m benchmarks.readme")
    return text


def write_readme() -> None:
    """Bring README.md up to date."""
    README.write_text(update(README.read_text()))


if __name__ == "__main__":
    write_readme()
