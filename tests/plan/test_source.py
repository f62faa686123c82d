"""The paper that a study cites is the one that the README lists beside it."""

import re

import pytest

from cohort.plan.yaml_files import read_yaml
from tests.conftest import ROOT

TABLE = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## The papers\n")[2]
ROWS = [re.sub(r"[*\[]", "", line) for line in TABLE.splitlines() if line.startswith("|")]
FILES = sorted((ROOT / "config/studies").glob("*.yaml"))
SOURCES = {file.stem: read_yaml(file).get("source", {}) for file in FILES}


@pytest.mark.parametrize("study", [name for name, source in SOURCES.items() if source])
def test_the_readme_cites_the_paper_of_each_study(study: str):
    (row,) = [row for row in ROWS if f"`{study}`" in row.split("|")[1]]
    for text in SOURCES[study].values():
        assert text.lower() in row.lower()
