"""The examples of docs/records.md, run as written on the released demo: pandas and DuckDB agree."""

from __future__ import annotations

import re

import duckdb
import numpy as np
import pandas as pd
import pytest

from tests.conftest import ROOT

TEXT = (ROOT / "docs/records.md").read_text().partition("## Releases")[2]


def example(language: str) -> str:
    (code,) = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return code


def test_pandas_and_duckdb_agree(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    printed: list[pd.DataFrame] = []
    exec(example("python"), {"print": printed.append})
    queried = duckdb.sql(example("sql")).df()
    assert len(queried) == 12 and set(queried["count"]) == {3}
    assert list(zip(queried["partition"], queried["J"], queried["strategy"], strict=True)) == list(
        printed[0].index
    )
    assert np.allclose(printed[0].to_numpy(), queried[["mean", "std", "count"]].to_numpy())
