"""`python -m benchmarks.readme`: the tables of README.md whose numbers were measured.

Each is worked out from committed results (`docs/curves`, `resources/released`,
`resources/paper_values`, `docs/performance.md`, `docs/contradictions.md`, `docs/claims-list.md`) and written between its two markers.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import yaml

from benchmarks.page import put_section
from benchmarks.peers import ROOT
from benchmarks.tables import NOTHING, table
from cohort.results.comparison import ONE_RUN
from tools.reproduction import comparison

README = ROOT / "README.md"
PERFORMANCE = ROOT / "docs" / "performance.md"
PAPERS = ("aml", "peco", "ucb", "fedentopt", "stratify")
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
Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Result:
    """A published value and ours, both in percent."""

    item: str
    what: str
    runs: int
    paper: float
    ours: float
    verdict: str = ONE_RUN

    def cells(self) -> list[str]:
        """The cells of the table's row."""
        numbers = [f"{self.paper:.2f}", f"{self.ours:.2f}", f"{self.ours - self.paper:+.2f}"]
        return [self.item, self.what, str(self.runs), *numbers, self.verdict]


def read_curve(name: str, **labels: str) -> Rows:
    """The rows of a file in `docs/curves` that have these labels."""
    return _read(ROOT / "docs" / "curves" / f"{name}.csv", labels)


def published(study: str, item: str, at: str, **labels: str) -> float:
    """The only value of a paper's item with these labels, in percent."""
    wanted = {"item": item, "at": at, **labels}
    (row,) = _read(ROOT / "resources" / "paper_values" / f"{study}.csv", wanted)
    return 100 * float(row["value"])


def _read(file: Path, wanted: Mapping[str, str]) -> Rows:
    with file.open(newline="", encoding="utf-8") as lines:
        return [row for row in csv.DictReader(lines) if wanted.items() <= row.items()]


def mean_percent(rows: Rows, column: str, first: int = 1, last: int = 10**6) -> float:
    """The mean of a column over the rounds from `first` to `last`, in percent."""
    return 100 * mean(float(row[column]) for row in rows if first <= int(row["round"]) <= last)


def results() -> Iterator[Result]:
    """Yield every result that was trained as its paper describes it."""
    yield from _aml()
    yield from _fedentopt()
    yield from _peco()
    yield from _stratify()
    yield from _ucb()


def _fedentopt() -> Iterator[Result]:
    """The rows of Table I that have runs, of the strategies that the paper is about."""
    titles = {"fedavg": "FedAvg", "fedentopt": "FedEntOpt", "fedentopt-dp": "FedEntOpt (DP)"}
    partitions = {"dir-0.1": "Dir(0.1)", "classes-2": "two classes"}
    for result in comparison("fedentopt", "tab1").results:
        strategy = result.labels["strategy"]
        if strategy in titles and result.paper and result.sample.n > 1:
            partition = partitions[result.labels["partition"]]
            what = f"{titles[strategy]}, CIFAR-10, LeNet-5, {partition}"
            numbers = 100 * result.paper.value, 100 * result.sample.mean
            yield Result("FedEntOpt, Table I", what, result.sample.n, *numbers, result.verdict)


def _peco() -> Iterator[Result]:
    """The rows of Table II that have runs, in rounds 21 to 30."""
    titles = {"peco": "PECO", "loss": "loss-based (reserved set)"}
    data = {"cifar10-unit": "CIFAR-10", "fashion-mnist": "Fashion-MNIST"}
    for result in comparison("peco", "tab2").results:
        labels = result.labels
        if result.at == "21-30" and result.paper and result.sample.n:
            what = f"{titles[labels['strategy']]}, {data[labels['dataset']]}, CNN, rounds 21 to 30"
            numbers = 100 * result.paper.value, 100 * result.sample.mean
            yield Result("PECO, Table II", what, result.sample.n, *numbers, result.verdict)


def _stratify() -> Iterator[Result]:
    """Stratify's MNIST rows of Table I, by its released runs, and a run begun on CIFAR-10."""
    partitions = {"classes-1": "#C = 1", "classes-3": "#C = 3", "classes-5": "#C = 5"}
    partitions |= {"dir-0.5": "Dir(0.5)", "iid": "IID"}
    source, strategy = "Stratify, Table I", "stratify-uniform"
    mnist = {"dataset": "mnist", "strategy": strategy}
    for result in comparison("stratify", "tab1").results:
        is_accuracy = result.metric == "test_accuracy" and mnist.items() <= result.labels.items()
        if is_accuracy and result.paper and result.sample.n:
            partition = partitions[result.labels["partition"]]
            what = f"Stratify by samples, MNIST, {partition}, best of 5 epochs"
            numbers = 100 * result.paper.value, 100 * result.sample.mean
            yield Result(source, what, result.sample.n, *numbers, result.verdict)
    labels = {"dataset": "cifar10", "partition": "classes-1"}
    paper = published("stratify", "TableI", "max", strategy=strategy, **labels)
    best = [mean_percent([row], strategy) for row in read_curve("stratify_single_seed0", **labels)]
    what = f"Stratify by samples, CIFAR-10, #C = 1, best of {len(best)} of 30 epochs"
    yield Result(source, what, 1, paper, max(best))


def _ucb() -> Iterator[Result]:
    """Yield the accuracies on own samples that the slides print, with ours."""
    titles = {"ucb": "UCB", "fedavg": "random"}
    for result in comparison("ucb", "results").results:
        if result.paper:
            what = f"{titles[result.labels['strategy']]}, round {result.at}, own samples"
            numbers = 100 * result.paper.value, 100 * result.sample.mean
            yield Result("UCB, results", what, len(result.values), *numbers, result.verdict)


def _aml() -> Iterator[Result]:
    begun = "CIFAR-100, FedAvg, rounds 20 to 100 of 2,000"
    for item, what, name, first in (
        ("AML, Fig. 3 (log)", f"{begun}, IID", "iid_J4e", 20),
        ("AML, Fig. 5 (log)", f"{begun}, Nc = 50", "sampled-50-51_J4e", 20),
        ("AML, Fig. 5 (log)", f"{begun}, Nc = 1", "sampled-1-2_J4e", 20),
        (
            "AML, Fig. 8 (log)",
            "Shakespeare, FedAvg, IID, round 500 of 500",
            "shakespeare_iid_J4",
            500,
        ),
        ("AML, Fig. 1 (log)", "CIFAR-100, centralized, OneCycle, epoch 5 of 500", "onecycle", 5),
    ):
        rows = read_curve(f"aml_{name}_seed0")
        logged = mean_percent(
            [row for row in rows if row["authors_test_accuracy"]], "authors_test_accuracy", first
        )
        yield Result(item, what, 1, logged, mean_percent(rows, "test_accuracy", first))


def measured() -> str:
    """Markdown: a table of published values and ours, and the claims that contradict themselves."""
    titles = ["source", "what", "runs", "published %", "ours %", "difference", "agreement"]
    rows = table(titles, [result.cells() for result in results()])
    listed = re.findall(
        r"^- \*\*`", (ROOT / "docs" / "contradictions.md").read_text(), re.MULTILINE
    )
    studies = [_study(name).get("claims", {}).values() for name in PAPERS]
    quotes = [[claim["quote"] for claim in claims if "quote" in claim] for claims in studies]
    (totals,) = re.findall(
        r"^\| all .*\|$", (ROOT / "docs" / "claims-list.md").read_text(), re.MULTILINE
    )
    held, not_held, undecided = re.findall(r"\d+", totals)[-3:]
    return (
        f"{rows}\n\nDifferences are in points. AML's rows are means over the rounds named, FedEntOpt's over "
        "the last ten of 500. A single run gets no verdict. `python -m benchmarks.readme` makes the table from "
        "the released runs, docs/curves and the papers' values.\n\n"
        f"Cohort judges {sum(map(len, quotes))} claims, from {sum(len(set(sentences)) for sentences in quotes)} sentences "
        f"of the papers ([all of them](docs/claims-list.md)). {len(listed)} are contradicted by "
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
    findings = "\n".join(f"- {finding['text']}" for finding in _study("showdown")["findings"])
    return f"{findings}\n\n{table(['selector', *titles], rows)}"


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
