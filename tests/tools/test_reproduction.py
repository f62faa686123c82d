"""README and the pages of docs that show results are those of the released runs."""

from __future__ import annotations

import re

import pytest

from cohort.plan.yaml_files import read_yaml
from tests.conftest import ROOT
from tools import reproduction, showdown
from tools.findings import problems, released_values


@pytest.mark.slow
@pytest.mark.parametrize("study", [*reproduction.PAPERS, showdown.STUDY])
def test_findings_and_page_of_a_study_are_those_of_its_released_runs(study: str) -> None:
    findings = read_yaml(ROOT / f"config/studies/{study}.yaml")["findings"]
    shown = released_values(study, findings)
    wrong = [problem for finding in findings for problem in problems(finding, shown)]
    assert wrong == [], f"run `python -m tools.findings {study}`"
    if study == showdown.STUDY:
        text = showdown.PAGE.read_text(encoding="utf-8")
        assert showdown.update(text) == text, "run `python -m tools.showdown`"
    else:
        text = (reproduction.PAGES / f"{study}.md").read_text(encoding="utf-8")
        command = f"{reproduction.COMMAND} {study}"
        assert reproduction.update_study(text, study) == text, f"run `{command}`"


@pytest.mark.slow
def test_the_documents_on_all_papers_are_current() -> None:
    printed = reproduction.printed_numbers()
    for file, text in reproduction.update_documents(printed).items():
        assert file.read_text(encoding="utf-8") == text, f"run `{reproduction.COMMAND}`"


def test_rows_that_wait_for_runs_are_left_out() -> None:
    head = "**Claims**\n\n| Claim | Measured |\n| --- | --- |\n"
    note = "Rows that wait for runs are left out (1)."
    judged = "| Ahead. | held (5 of 5 runs) |"
    lacking = "| Faster. | not enough runs (4 of 5 runs) |"
    printed = "| Dir(0.1) | paper 46.61 \N{PLUS-MINUS SIGN} 0.17 | paper 44.84 |"
    ours = "| C = 2 | 52.14 (n = 4 of 5)<br>paper 51.58 (+0.56) | paper 51.68 |"
    assert reproduction.rows_with_runs(f"{head}{lacking}\n{printed}") == ""
    assert reproduction.rows_with_runs(f"{head}{ours}\n{printed}") == f"{head}{ours}\n\n{note}"
    assert reproduction.rows_with_runs(f"{head}{judged}\n{lacking}") == f"{head}{judged}\n\n{note}"


def test_counts_are_those_of_the_verdicts_on_the_pages() -> None:
    """Read again from the text of each study's page."""
    readme = (ROOT / "README.md").read_text().partition("<!-- results: ")[2]
    for study, titles in reproduction.TABLES.items():
        page, tables = (ROOT / f"docs/reproduction/{study}.md").read_text(), ""
        study_tables = read_yaml(ROOT / f"config/studies/{study}.yaml")["tables"]
        for head in (study_tables[name]["title"] for name in titles):
            rows_after = page.partition(f"**{head}**")[2].partition("\n\n**")[0].splitlines()
            tables += "\n".join(row for row in rows_after if row.startswith("|"))
        verdicts = [len(re.findall(rf"\b{verdict}\b", tables)) for verdict in reproduction.COLORS]
        row = re.search(rf"^\| \[\w+\]\(docs/reproduction/{study}.md\) (.*)", readme, re.MULTILINE)
        assert row and [int(cell) for cell in row[1].split("|")[1:5]] == [sum(verdicts), *verdicts]


@pytest.mark.parametrize("study", ["aml", "fedentopt", "peco", "stratify", "ucb"])
def test_the_code_on_a_page_runs_on_the_released_runs(
    study: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / f"docs/reproduction/{study}.md").read_text()
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, {})  # noqa: S102 (our own text)
        assert capsys.readouterr().out


def test_the_speed_in_the_readme_is_that_of_the_performance_page() -> None:
    section = (ROOT / "docs/performance.md").read_text().split("<!-- W2: ")[1]
    seconds = [
        float(re.search(rf"^\| {variant} +\| ([\d.]+)", section, re.MULTILINE)[1])
        for variant in (r"ours, 2 processes", "Flower", "plain loop")
    ]
    sentence = "takes {:.2f} seconds, where Flower takes {:.1f} and a plain PyTorch loop {:.1f}"
    assert sentence.format(*seconds) in (ROOT / "README.md").read_text()
