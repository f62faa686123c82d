"""README.md's measured tables are those of the committed results."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import readme
from tests.conftest import ROOT

TEXT = readme.README.read_text()


@pytest.mark.slow
def test_the_readme_is_current():
    assert readme.update(TEXT) == TEXT, "run `python -m benchmarks.readme`"


def test_counts_are_those_of_the_reproduction_pages() -> None:
    """README's counts are those of the verdicts in each page's table, and its ends those of the differences there."""
    section = TEXT.partition("<!-- results: ")[2].partition("<!-- end of results ")[0]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in section.splitlines()]
    counted = {
        title: [sum(map(int, column)) for column in zip(*(row[2:7] for row in group), strict=True)]
        for _, _, title in readme.TABLES
        if (group := [row for row in rows if row and row[0] == title])
    }
    heads = {
        "fedentopt": "**Table I: baselines**",
        "stratify": "**Table I: single-sample learning**",
        "peco": "**Table II: PECO and the loss-based choice**",
        "ucb": "**Results**",
    }
    for study, _, title in readme.TABLES:
        page = (ROOT / f"docs/reproduction/{study}.md").read_text()
        table = page.partition(heads[study])[2].partition("\n\n**")[0].partition("Bold: ")[0]
        verdicts = [len(re.findall(rf"\b{verdict}\b", table)) for verdict in readme.VERDICTS]
        assert counted[title] == [sum(verdicts), *verdicts, counted[title][-1]]
    assert counted["UCB, results"][-1] == len(re.findall(r"paper [\d.]+‡ \(\+", page))


def test_amls_numbers_are_those_of_the_curves() -> None:
    """README and the page say by how much our accuracy exceeds the authors' from round 20 on."""
    page = (ROOT / "docs/reproduction/aml.md").read_text()
    numbers = []
    for name in ("iid", "sampled-50-51"):
        curve = pd.read_csv(ROOT / f"docs/curves/aml_{name}_J4e_seed0.csv").query("round >= 20")
        ahead = 100 * (curve["test_accuracy"] - curve["authors_test_accuracy"])
        numbers += [f"{ahead.mean():.2f}", f"{ahead.abs().max():.2f}"]
        assert f"averages {numbers[-2]} points above the authors'" in page
    line = "({} points higher on average, {} at most) and with 50 classes per client ({}; {})"
    assert line.format(*numbers) in TEXT


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
