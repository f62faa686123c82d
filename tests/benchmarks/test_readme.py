"""README.md's measured tables are those of the committed results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import readme
from tests.conftest import ROOT

TEXT = readme.README.read_text()


@pytest.mark.slow
def test_the_readme_is_current():
    assert readme.update(TEXT) == TEXT, "run `python -m benchmarks.readme`"


def test_results_are_those_of_the_reproduction_page():
    """Its tables were written from the pipeline's own metrics, not from the curves."""
    page = "".join(map(Path.read_text, (ROOT / "docs/reproduction").glob("*.md")))
    section = TEXT.partition("<!-- results: ")[2].partition("<!-- end of results ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines()]
    numbers = {(row[0], row[1]): row[3:5] for row in rows if len(row) == 7}
    ours = {key: value for key, (_, value) in numbers.items()}
    start = "CIFAR-100, FedAvg, rounds 20 to 100 of 2,000"
    for item, what, line in (
        ("AML, Fig. 8 (log)", "Shakespeare, FedAvg, IID, round 500 of 500", "| 500 | {} | 37.93 |"),
        (
            "AML, Fig. 1 (log)",
            "CIFAR-100, centralized, OneCycle, epoch 5 of 500",
            "| 5 | {} | 27.20 |",
        ),
        (
            "PECO, Table II",
            "PECO, Fashion-MNIST, CNN, rounds 21 to 30",
            "| Fashion-MNIST | PECO | **{}** ± ",
        ),
        (
            "Stratify, Table I",
            "Stratify by samples, MNIST, #C = 1, best of 5 epochs",
            "| **{}** ± 0.14 / **4.4** ± 0.9 / ",
        ),
    ):
        expected = line.format(ours[item, what])
        assert expected in page, expected
    for item, what in (("AML, Fig. 3 (log)", "IID"), ("AML, Fig. 5 (log)", "Nc = 50")):
        authors, own = map(float, numbers[item, f"{start}, {what}"])
        assert f"averages {own - authors:.2f} points above the authors'" in page


def test_speed_is_that_of_the_performance_page():
    rows = dict(re.findall(r"^\| ([A-Z].*?) +\| (.*) \|$", readme.speed(), re.MULTILINE))
    for part, column in (("W1", 0), ("W2", 2)):
        section = readme.PERFORMANCE.read_text().split(f"<!-- {part}: ")[1]
        flower = re.search(r"^\| Flower +\| ([\d.]+)", section, re.MULTILINE)
        assert flower and rows["Flower"].split("|")[column].strip() == flower[1]


def test_a_missing_marker_is_named():
    with pytest.raises(ValueError, match="lacks the marker '<!-- end of speed -->'"):
        readme.update(TEXT.replace("<!-- end of speed -->", ""))


def test_the_fastest_variant_of_a_framework_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A failed variant is none; a workload or a framework without numbers gets no column or row."""
    page = tmp_path / "performance.md"
    page.write_text("""<!-- W2: made by `make bench` -->
Measured 2026-01-02 03:04 UTC by `make bench`. Peers: blazefl 2.0.3.

| variant              | median s/round | clients/s | steps/s | memory, MB |
|----------------------|----------------|-----------|---------|------------|
| ours, 2 processes    | failed         | -         | -       | -          |
| BlazeFL, 2 processes | 12.5           | 0.800     | 32.0    | 700        |
| BlazeFL, 2 threads   | 8.00           | 1.25      | 50.0    | 600        |
<!-- end of W2 -->
""")
    monkeypatch.setattr(readme, "PERFORMANCE", page)
    titles, _, *rows = readme.speed().splitlines()
    assert [title.strip() for title in titles.split("|")[2:-1]] == [
        "W2, s/round", "W2, clients/s", "W2, steps/s", "W2, MB",
    ]  # fmt: skip
    assert [cell.strip() for cell in rows[0].split("|")[1:-1]] == [
        "BlazeFL", "8.00", "1.25", "50.0", "600",
    ]  # fmt: skip
    assert rows[1:] == ["", "Measured: W2 on 2026-01-02. Versions: blazefl 2.0.3."]
