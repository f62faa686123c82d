"""Forged releases: each is refused by its run and column, or by its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cohort.core.errors import UserError
from cohort.data.shards import Shards
from cohort.data.shards import write as write_shards
from cohort.plan import load
from cohort.records.record import Record, read
from cohort.results.collect import is_same
from cohort.results.release.folder import read_release
from cohort.results.release.restoring import restore
from cohort.training.cell import Cell
from tests.conftest import ROOT
from tests.results.release.forgeries import FORGERIES, forge

Cells = dict[str, Cell]
KEYS = ("J", "strategy", "seed")
RUNS = [("J4", "fedavg", 0), ("J4", "fedavg", 1), ("J16", "fedavg", 0)]


@pytest.fixture(scope="module")
def cells() -> Cells:
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(ROOT)
        return dict(load({"studies": ["demo"]}).cells)


@pytest.fixture(scope="module")
def runs(cells: Cells) -> list[Record]:
    released = {run.header["digest"]: run for run in read_release(ROOT / "resources/released/demo")}
    dealt = [cell for cell in cells.values() if cell.settings.partition == "dir-0.1"]
    keys = {tuple(getattr(cell.settings, key) for key in KEYS): cell.digest for cell in dealt}
    return [released[keys[key]] for key in RUNS]


@pytest.mark.parametrize(("sentence", "what", "change"), FORGERIES)
def test_a_forged_release_is_refused(
    sentence: str,
    what: str,
    change: Callable[..., object],
    runs: list[Record],
    cells: Cells,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    forge(tmp_path / "demo", runs, what, change)
    with pytest.raises(UserError, match=sentence) as error:
        restore(tmp_path / "demo", "theirs", cells)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


def test_what_a_project_knows(
    runs: list[Record], cells: Cells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Rows of runs that no study plans are passed over, a run's own claim that it was restored is
    kept as such, and its label counts must be those of the shards that exist here."""
    monkeypatch.chdir(tmp_path)
    claim = {"release": "resources/released/demo"}
    forge(tmp_path / "demo", runs, "run", lambda run: run.header.update(restored=[claim]))
    first, *others = (run.header["digest"] for run in runs)
    planned = {first: cells[first]}
    shards = Path(cells[first].inputs["shards"])
    counts = runs[0].clients["label_counts"]
    for dealt in (counts[::-1], counts):
        indices = np.split(np.arange(counts.sum()), np.cumsum(dealt.sum(axis=1))[:-1])
        write_shards(shards, Shards(indices, dealt))
        if dealt is not counts:
            with pytest.raises(UserError, match=f"label_counts are not those of {shards}"):
                restore(tmp_path / "demo", "theirs", planned)
    outcome = restore(tmp_path / "demo", "theirs", planned)
    assert outcome.restored == [first] and set(outcome.unplanned) == set(others)
    restored = read(cells[first].path)
    (source,) = restored.header["restored"]
    assert source["release"] == "theirs" and source["restored"] == [claim]
    assert is_same(restored, runs[0])
