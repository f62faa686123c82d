"""Forged releases, with checksums that fit: each is refused by its run and column, or by its file.

A forgery is what the error must say, and a statement about a run (and its parts), all runs, the
tables, or the manifest. The runs are FedAvg with J4 and two seeds, and with J16, of the released
demo: 100 rounds of 4 of 20 clients, evaluated in every second one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from cohort.core.errors import UserError
from cohort.core.files import sha256
from cohort.core.sealed_json import read_sealed, write_sealed
from cohort.data.shards import Shards
from cohort.data.shards import write as write_shards
from cohort.plan import load
from cohort.records.record import Record, read
from cohort.results.collect import is_same
from cohort.results.release.folder import DICTIONARIES, read_release, write_release
from cohort.results.release.restoring import restore
from cohort.training.cell import Cell
from tests.conftest import ROOT

Tables = dict[str, pa.Table]


def put(series: list[tuple[int, float]], value: float, at: int = 10) -> None:
    """Change a value of a curve."""
    series[at] = series[at][0], value


def cut(run: Record, rounds: int) -> None:
    """Cut everything after a round."""
    for group in (run.history.metrics, run.history.cost):
        for name, series in group.items():
            group[name] = [pair for pair in series if pair[0] <= rounds]
    del run.history.cohorts[rounds:], run.history.responders[rounds:]


def swap(runs: list[Record]) -> None:
    """Swap what two runs recorded."""
    for group in ("history", "clients", "classes"):
        ours, theirs = map(vars, runs[:2])
        ours[group], theirs[group] = theirs[group], ours[group]


def take(tables: Tables, name: str, order: Callable[[int], Any]) -> None:
    """Take the rows of a table in another order."""
    tables[name] = tables[name].take(np.array(order(len(tables[name]))))


def begin(tables: Tables, name: str, key: str, first: Any) -> None:
    """Change the first value of a column."""
    table = tables[name]
    values = pa.array([first, *table[key].to_pylist()[1:]])
    tables[name] = table.set_column(table.column_names.index(key), key, values)


def forge(folder: Path, runs: list[Record], part: str, change: str) -> None:
    """Write a release of these runs, with a change of the first run, of all, of the tables, or of the manifest."""
    runs = copy.deepcopy(runs)
    namespace = globals() | vars(runs[0]) | vars(runs[0].history) | {"runs": runs, "run": runs[0]}
    if part in ("run", "runs"):
        exec(change, namespace)  # noqa: S102
    write_release(folder, "demo", runs)
    manifest = read_sealed(folder / "manifest.json", "", "")
    if part == "manifest":
        exec(change, namespace | {"folder": folder, "manifest": manifest})  # noqa: S102
    if part == "tables":
        tables = {Path(name).stem: parquet.read_table(folder / name) for name in manifest["files"]}
        exec(change, namespace | {"tables": tables})  # noqa: S102
        manifest["runs"] = len(tables["runs"])
        for name in {*manifest["files"]} - {f"{name}.parquet" for name in tables}:
            del manifest["files"][name]
        for name, table in tables.items():
            file = folder / f"{name}.parquet"
            parquet.write_table(
                table, file, use_dictionary=list(set(DICTIONARIES) & set(table.column_names))
            )
            manifest["files"][file.name] = {"rows": len(table), "sha256": sha256(file)}
    write_sealed(folder / "manifest.json", manifest)


RUN = [
    ("test_accuracy is 7", "put(metrics['test_accuracy'], 7)"),
    ("test_accuracy is nan", "put(metrics['test_accuracy'], np.nan)"),
    ("test_loss is -5", "put(metrics['test_loss'], -5)"),
    ("traffic is negative", "traffic['more'] = np.array([-1, 1, 0])"),
    ("accuracy is 2", "clients['accuracy'][3] = 2"),
    ("size is not the sum", "clients['size'][3] = 10**6"),
    ("right is more than was tested", "classes['right'][2] = 10**6"),
    ("right are not counts", "classes['right'][2] = -1"),
    ("holdout_accuracy has 1 rounds, not", "metrics['holdout_accuracy'] = [(2, 0.5)]"),
    ("energy is not a cost", "cost['energy'] = [(1, 0.5)]"),
    ("cohort has other clients than 0 to 19", "cohorts[4] = responders[4] = np.arange(96, 100)"),
    ("cohort has a client twice", "cohorts[4] = responders[4] = np.array([1, 1, 2, 3])"),
    ("cohort is not of 1 to 4 clients", "cohorts[4] = responders[4] = np.arange(20)"),
    ("responders has clients that are not in", "responders[4] = np.arange(5)"),
    ("responders lacks clients", "responders[4] = np.arange(0)"),
    ("99 cohorts for 100 rounds", "cut(run, 99)"),
    ("profiles should not be there", "profile.append(np.ones((4, 6)))"),
    ("pool is not there", "run.history.pools = run.history.norms = cohorts"),
    ("test_accuracy has 0 rounds, not the 50", "del metrics['test_accuracy']"),
    ("train_loss do not ascend", "metrics['train_loss'].insert(0, (-48, 1.0))"),
    ("train_loss do not ascend", "metrics['train_loss'].append((100, 1.0))"),
    ("ascend within 1 to 100", "run.history.add_metrics(101, test_accuracy=0.5)"),
    ("'x y' is not the name", "clients['x y'] = clients['size']"),
    ("seconds is not there", "del cost['seconds']"),
    ("client_steps is not there", "cost['client_steps'].pop(3)"),
    (r"this digest \(lr 0.5, the cell 0.05\)", "header['settings']['lr'] = 0.5"),
    ("settings of run .* cannot be read", "header['settings']['selector'] = ['random']"),
    ("science version 7 of model:small-mlp", "header['science']['model:small-mlp'] = 7"),
    ("unheard_of 1, the cell unset", "header['settings']['unheard_of'] = 1"),
    ("selector.name loss, the cell random", "header['settings']['selector'] = {'name': 'loss'}"),
    ("'release' is a required", "header['restored'] = [{}]"),
    ("2 is not of type", "header['restored'] = [{'release': 'a', 'restored': 2}]"),
]
RUNS = [("label_counts are not those of", "swap(runs)")]
TABLES = [
    (
        "curves.parquet is not sorted",
        "take(tables, 'curves', np.random.default_rng(0).permutation)",
    ),
    ("do not ascend", "take(tables, 'curves', lambda rows: [*range(5), *range(rows)])"),
    ("not sorted by round", "take(tables, 'cohorts', lambda rows: [1, 0, *range(2, rows)])"),
    ("not sorted by client", "take(tables, 'clients', lambda rows: [1, 0, *range(2, rows)])"),
    ("runs.parquet .* a run twice", "take(tables, 'runs', lambda rows: [0, *range(rows)])"),
    ("runs.parquet is not sorted", "take(tables, 'runs', lambda rows: range(rows)[::-1])"),
    ("runs.parquet has no run", "take(tables, 'runs', lambda rows: range(1, rows))"),
    ("no rows in cohorts", "del tables['cohorts']"),
    ("curves.parquet lacks values", "begin(tables, 'curves', 'value', None)"),
    ("round is not a whole number", "begin(tables, 'curves', 'round', 1.5)"),
    ("size lacks values", "begin(tables, 'clients', 'size', None)"),
]
MANIFEST = [
    ("name: ", "manifest['name'] = '../../x'"),
    ("runs.parquet has 3 rows", "manifest['runs'] = 37"),
    ("curves.parquet has .* rows", "manifest['files']['curves.parquet']['rows'] = 1"),
    ("'../x.parquet' was unexpected", "manifest['files']['../x.parquet'] = {}"),
    ("'cite' is a required", "del manifest['cite']"),
]
FORGERIES = [
    (sentence, part, change)
    for part, table in [("run", RUN), ("runs", RUNS), ("tables", TABLES), ("manifest", MANIFEST)]
    for sentence, change in table
]


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


@pytest.mark.parametrize(("sentence", "part", "change"), FORGERIES)
def test_a_forged_release_is_refused(
    sentence: str, part: str, change: str, runs: list[Record], cells: Cells, empty_folder: Path
):
    forge(Path("demo"), runs, part, change)
    with pytest.raises(UserError, match=sentence) as error:
        restore(Path("demo"), "theirs", cells)
    assert "\n" not in str(error.value)
    assert [path.name for path in empty_folder.iterdir()] == ["demo"]


def test_what_a_project_knows(runs: list[Record], cells: Cells, empty_folder: Path):
    """Rows of runs that no study plans are passed over, a run's own claim that it was restored is
    kept as such, and its label counts must be those of the shards that exist here."""
    claim = {"release": "resources/released/demo"}
    forge(Path("demo"), runs, "run", f"header['restored'] = [{claim}]")
    first, *others = (run.header["digest"] for run in runs)
    planned = {first: cells[first]}
    shards = Path(cells[first].inputs["shards"])
    counts = runs[0].clients["label_counts"]
    for dealt in (counts[::-1], counts):
        indices = np.split(np.arange(counts.sum()), np.cumsum(dealt.sum(axis=1))[:-1])
        write_shards(shards, Shards(indices, dealt))
        if dealt is not counts:
            with pytest.raises(UserError, match=f"label_counts are not those of {shards}"):
                restore(Path("demo"), "theirs", planned)
    outcome = restore(Path("demo"), "theirs", planned)
    assert outcome.restored == [first] and set(outcome.unplanned) == set(others)
    restored = read(cells[first].path)
    (source,) = restored.header["restored"]
    assert source["release"] == "theirs" and source["restored"] == [claim]
    assert is_same(restored, runs[0])
