"""Snakemake's own report shows what a study says, and carries nothing of it out."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser

from tests.security.test_captions import CAPTIONS
from tests.workflow.conftest import Project


class Scripts(HTMLParser):
    """Counts the script elements of a page."""

    count = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.count += tag == "script"


def scripts(page: str) -> int:
    parser = Scripts()
    parser.feed(page)
    return parser.count


def report(project: Project) -> str:
    project.snakemake("--report", "report.html")
    return (project.root / "report.html").read_text()


def test_snakemakes_report_reads_no_file_for_a_study_and_runs_no_script(finished: Project):
    before = scripts(report(finished))
    secret = finished.root.parent / "secret.txt"
    secret.write_text("the user's own words")
    study = finished.study()
    study["figures"]["fig1"]["title"] = CAPTIONS["the end of a script"]
    study["figures"]["fig1"]["caption"] = "\n\n".join(
        CAPTIONS[name].format(secret=secret) for name in CAPTIONS if name != "jinja"
    )
    study["tables"]["tab1"]["caption"] = CAPTIONS["jinja"]
    finished.write(study)
    finished.snakemake("tiny_fig1", "tiny_tab1")
    page = report(finished)
    assert "the user's own words" not in page
    assert scripts(page) == before
    shown = json.loads(re.search(r'"caption": ("<p>&lt;/script&gt;(?:[^"\\]|\\.)*")', page)[1])
    assert "{{ 7 * 7 }}" in page and f".. include:: {secret}" in unescape(shown)
