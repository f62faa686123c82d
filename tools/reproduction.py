"""`python -m tools.reproduction STUDY`: bring docs/reproduction/STUDY.md up to date.

Its tables come from the released runs, its findings from the study. The rest is written by hand.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path

from benchmarks.page import put_section
from cohort.commands.cli import main as cohort
from cohort.core.paths import CLAIMS_TABLE, RELEASED
from cohort.pipeline import preview
from cohort.plan import load
from cohort.plan.yaml_files import read_yaml
from cohort.records.record import Record
from cohort.results.claims.judged import JudgedClaim, read_judged
from cohort.results.comparison import Comparison
from cohort.results.intervals import NOT_ENOUGH
from cohort.results.release.folder import read_release
from cohort.results.release.restoring import restore

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reproduction"
WAITING = f"| {NOT_ENOUGH} ("
"""What begins the cell of a claim with too few runs."""
PAPER = "| paper "
"""What begins a cell that has the paper's value only."""


def update(text: str, study: str) -> str:
    """Replace the findings and tables of a study's page by those of the study and of its released
    runs."""
    command = f"python -m tools.reproduction {study}"
    text = put_section(text, "findings", listed(study), command)
    return put_section(text, "tables", section(study), command)


def listed(study: str) -> str:
    """A study's findings as a Markdown list."""
    findings = read_yaml(ROOT / "config/studies" / f"{study}.yaml")["findings"]
    return "\n".join(f"- {finding['text']}" for finding in findings)


def section(study: str) -> str:
    """Markdown: how a study's released runs were made, its tables, and verdicts on its claims."""
    runs = read_release(ROOT / RELEASED / study)
    return "\n\n".join([_provenance_text(study, runs), *_tables(study)])


@contextmanager
def in_restored_folder(study: str) -> Iterator[None]:
    """Work, in this block, in a temporary folder with only the released runs of a study, if any."""
    with tempfile.TemporaryDirectory() as work, chdir(work):
        for name in ("config", "resources", "rules", "Snakefile"):
            Path(name).symlink_to(ROOT / name)
        folder = Path(RELEASED, study)
        if folder.exists():
            restore(folder, str(folder), load({"studies": study}).cells)
        yield


@functools.cache
def comparison(study: str, table: str) -> Comparison:
    """Compare the released runs of a study by one of its tables."""
    with in_restored_folder(study):
        files = preview.draw_item(load({"studies": study}), study, table)
        return Comparison.read(next(file for file in files if file.endswith(".json")))


def judge_released(study: str) -> list[JudgedClaim]:
    """Judge a study's claims by its released runs and by the paper's own values."""
    with in_restored_folder(study):
        files = preview.draw_claims(load({"studies": study}), study)
        return read_judged(next(file for file in files if file.endswith(".json")))


def _tables(study: str) -> list[str]:
    """The tables of a study's released runs in Markdown."""
    with in_restored_folder(study):
        cohort(["draw", study])
        files = Path("results/full/partial/tables", study).glob("*.md")
        names = sorted((file.stem for file in files), key=lambda name: (name == CLAIMS_TABLE, name))
        texts = [Path("results/full/partial/tables", study, f"{name}.md") for name in names]
        tables = (rows_with_runs(file.read_text(encoding="utf-8").strip()) for file in texts)
        return [table for table in tables if table]


def rows_with_runs(table: str) -> str:
    """Drop the rows of a Markdown table that wait for runs; empty if no other is in it."""
    lines = table.splitlines()
    shown = [line for line in lines if not _is_waiting(line)]
    rows = [line for line in shown if line.startswith("| ")]
    if len(rows) < 3:  # the header and the line below it
        return ""
    left_out = len(lines) - len(shown)
    note = [f"Rows that wait for runs are left out ({left_out})."] if left_out else []
    return "\n".join([*shown, *(["", *note] if note else [])])


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


def main(studies: Sequence[str]) -> None:
    """Bring the pages of these studies up to date."""
    for study in studies:
        page = PAGES / f"{study}.md"
        page.write_text(update(page.read_text(encoding="utf-8"), study), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
