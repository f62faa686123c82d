"""The examples of docs/records.md, run as written on the released demo: pandas and DuckDB agree."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from tests.conftest import ROOT

TEXT = (ROOT / "docs/records.md").read_text().partition("## Releases")[2]


def example(language: str) -> str:
    (code,) = re.findall(rf"```{language}\n(?!from rocrate)(.*?)```", TEXT, re.DOTALL)
    return code


def test_pandas_and_duckdb_agree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(ROOT)
    printed: list[pd.DataFrame] = []
    script = tmp_path / "example.py"
    script.write_text(example("python"))
    runpy.run_path(str(script), {"print": printed.append})
    queried = duckdb.sql(example("sql")).df()
    assert len(queried) == 12 and set(queried["count"]) == {3}
    assert list(zip(queried["partition"], queried["J"], queried["strategy"], strict=True)) == list(
        printed[0].index
    )
    assert np.allclose(printed[0].to_numpy(), queried[["mean", "std", "count"]].to_numpy())
