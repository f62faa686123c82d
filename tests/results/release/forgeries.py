"""Forged releases, with checksums that fit: what the error must say, and the change that it must be
said of.

The runs are FedAvg with J4 and two seeds, and with J16, of the released demo: 100 rounds of 4 of 20
clients, evaluated in every second one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from cohort.core.files import sha256
from cohort.core.sealed_json import read_sealed, write_sealed
from cohort.records.record import Record
from cohort.results.release.folder import DICTIONARIES, write_release

Change = Callable[[Record], object]
Tables = dict[str, pa.Table]
Manifest = dict[str, Any]
EVERYTHING = ("metrics", "cost", "cohorts", "responders", "traffic", "clients", "classes")


def curve(name: str, value: float, at: int = 10, group: str = "metrics") -> Change:
    """Change a value of a curve."""

    def change(run: Record) -> None:
        series = getattr(run.history, group)[name]
        series[at] = series[at][0], value

    return change


def cost(name: str, value: float) -> Change:
    return curve(name, value, group="cost")


def curves(name: str, change: Callable[[list[Any]], object], group: str = "metrics") -> Change:
    """Change the list of rounds and values of a curve."""
    return lambda run: change(getattr(run.history, group)[name])


def more(group: str, **values: Any) -> Change:
    """Update a group of the history, or of the record."""
    return lambda run: getattr(run.history, group, getattr(run, group, None)).update(values)


def drop(group: str, *names: str) -> Change:
    """Remove names from a group of the history, all without any."""
    return lambda run: [
        getattr(run.history, group).pop(name) for name in names or list(getattr(run.history, group))
    ]


def entry(group: str, name: str, index: Any, value: Any) -> Change:
    """Change entries of an array of clients or classes."""

    def change(run: Record) -> None:
        array = getattr(run, group)[name] = getattr(run, group)[name].copy()
        array[index] = value

    return change


def cohort(*clients: int, responders: Sequence[int] | None = None) -> Change:
    """Change the clients of round 5, and those that respond."""

    def change(run: Record) -> None:
        if responders is None:
            run.history.cohorts[4] = np.array(clients, np.int64)
        run.history.responders[4] = np.array(clients if responders is None else responders)

    return change


def header(part: str, **values: Any) -> Change:
    return lambda run: run.header[part].update(values)


def cut(rounds: int, status: str = "done") -> Change:
    """Cut everything after a round."""

    def change(run: Record) -> None:
        run.header["status"] = status
        for group in (run.history.metrics, run.history.cost):
            for name, series in group.items():
                group[name] = [pair for pair in series if pair[0] <= rounds]
        del run.history.cohorts[rounds:], run.history.responders[rounds:]
        often = np.bincount(np.concatenate(run.history.cohorts), minlength=20)
        total = sum(dict(run.history.cost["bytes_up"]).values())
        run.clients["selected"] = often
        run.history.traffic["model"] = np.array([total, total, 0], np.int64)

    return change


def probe(run: Record) -> None:
    """Claim that the cohort was probed."""
    run.history.pools = run.history.norms = run.history.cohorts


def trade(run: Record) -> None:
    """Give a sample of client 0 to client 1."""
    counts = run.clients["label_counts"] = run.clients["label_counts"].copy()
    label = np.flatnonzero(counts[0])[0]
    counts[:2, label] += [-1, 1]
    run.clients["size"] = counts.sum(axis=1)
    run.clients["accuracy"] = np.zeros(20)


def swap(*groups: str, other: int = 1) -> Callable[[list[Record]], object]:
    """Swap what two runs recorded."""

    def change(runs: list[Record]) -> None:
        for group in groups:
            ours, theirs = (
                vars(run.history) if hasattr(run.history, group) else vars(run)
                for run in (runs[0], runs[other])
            )
            ours[group], theirs[group] = theirs[group], ours[group]

    return change


def take(name: str, order: Callable[[int], Any]) -> Callable[[Tables], object]:
    """Take the rows of a table in another order."""
    return lambda tables: tables.update(
        {name: tables[name].take(np.array(order(len(tables[name]))))}
    )


def column(name: str, key: str, first: Any) -> Callable[[Tables], object]:
    """Change the first value of a column."""

    def change(tables: Tables) -> None:
        table = tables[name]
        values = pa.array([first, *table[key].to_pylist()[1:]])
        tables[name] = table.set_column(table.column_names.index(key), key, values)

    return change


def bomb(folder: Path, manifest: Manifest) -> None:
    """Ten million rounds in some kB."""
    rows = np.zeros(10**7, np.int64)
    digests = pa.DictionaryArray.from_arrays(rows.astype(np.int32), ["k000000000000"])
    table = pa.table({"digest": digests, "round": rows, "value": rows.astype(float)})
    file = folder / "curves.parquet"
    parquet.write_table(table, file, compression="zstd")
    manifest["files"][file.name] = {"rows": len(rows), "sha256": sha256(file)}


def files(name: str, **values: Any) -> Callable[[Path, Manifest], object]:
    """Change what the manifest says of a file."""
    return lambda folder, manifest: manifest["files"].setdefault(name, {}).update(values)


def forge(folder: Path, runs: list[Record], what: str, change: Any) -> None:
    """Write a release of these runs, with a change of the first run, of all, of the tables, or of
    the manifest."""
    runs = copy.deepcopy(runs)
    if what in ("run", "runs"):
        change(runs if what == "runs" else runs[0])
    write_release(folder, "demo", runs)
    manifest = read_sealed(folder / "manifest.json", "", "")
    if what == "manifest":
        change(folder, manifest)
    if what == "tables":
        tables = {Path(name).stem: parquet.read_table(folder / name) for name in manifest["files"]}
        change(tables)
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


RUN: list[tuple[str, Change]] = [
    ("test_accuracy is 7", curve("test_accuracy", 7)),
    ("test_accuracy is nan", curve("test_accuracy", np.nan)),
    ("test_accuracy is not a share", curve("test_accuracy", 0.12345)),
    ("test_accuracy does not end with the sum of right", curve("test_accuracy", 0.5, at=-1)),
    ("test_loss is -5", curve("test_loss", -5)),
    ("test_classes_named is more than the classes", curve("test_classes_named", 11)),
    ("test_classes_named ends with fewer", curve("test_classes_named", 1, at=-1)),
    ("cohort_entropy is not that", curve("cohort_entropy", 2.5)),
    ("seconds is less than its parts", cost("seconds_training", 1e9)),
    ("traffic is not the sum of bytes_down", cost("bytes_down", 0)),
    ("client_steps are not those of J4", cost("client_steps", 10**6)),
    ("traffic is negative", more("traffic", more=np.array([-1, 1, 0]))),
    ("accuracy is 2", entry("clients", "accuracy", 3, 2)),
    ("accuracy is not a share", entry("clients", "accuracy", 3, 0.98765)),
    ("size is not the sum", entry("clients", "size", 3, 10**6)),
    ("cohort_entropy is not that", trade),
    ("selected is not how often", entry("clients", "selected", 3, 10**6)),
    ("right is more than was tested", entry("classes", "right", 2, 10**6)),
    ("right are not counts", entry("classes", "right", 2, -1)),
    ("bonus is not a column", more("clients", bonus=np.ones(20))),
    ("holdout_accuracy has 1 rounds, not", more("metrics", holdout_accuracy=[(2, 0.5)])),
    ("energy is not a cost", more("cost", energy=[(1, 0.5)])),
    ("cohort has other clients than 0 to 19", cohort(96, 97, 98, 99)),
    ("cohort has a client twice", cohort(1, 1, 2, 3)),
    ("cohort is not of 1 to 4 clients", cohort(*range(20))),
    ("responders has clients that are not in", cohort(responders=[0, 1, 2, 3, 4])),
    ("responders lacks clients", cohort(responders=[])),
    ("99 cohorts for 100 rounds", cut(99)),
    ("profiles is there", lambda run: run.history.profile.append(np.ones((4, 6)))),
    ("pool is not there", probe),
    ("test_accuracy has 0 rounds, not the 50", drop("metrics", "test_accuracy")),
    ("train_loss do not ascend", curves("train_loss", lambda series: series.insert(0, (-48, 1.0)))),
    ("train_loss has other rounds", curves("train_loss", lambda series: series.pop(3))),
    ("cohort_entropy has other rounds", drop("metrics", "cohort_entropy")),
    ("seconds is not there", drop("cost", "seconds")),
    ("client_steps is not there", curves("client_steps", lambda series: series.pop(3), "cost")),
    ("weights_sha256 is 0", lambda run: run.header.update(weights_sha256="0" * 64)),
    (r"this digest \(lr\)", header("settings", lr=0.5)),
    ("settings of run .* cannot be read", header("settings", selector=["random"])),
    (r"this digest \(model:small-mlp\)", header("science", **{"model:small-mlp": 7})),
    ("'release' is a required", lambda run: run.header.update(restored=[{}])),
    ("2 is not of type", lambda run: run.header.update(restored=[{"release": "a", "restored": 2}])),
]
SWAPS: list[tuple[str, Callable[[list[Record]], object]]] = [
    ("cohort_entropy is not that", swap("metrics")),
    ("selected is not how often", swap("cohorts", "responders")),
    ("label_counts are not those of run", swap(*EVERYTHING)),
    ("test_accuracy", swap("classes")),
    ("client_steps are not those of J16", swap(*EVERYTHING, other=2)),
]


TABLES: list[tuple[str, Callable[[Tables], object]]] = [
    ("curves.parquet is not sorted", take("curves", np.random.default_rng(0).permutation)),
    ("do not ascend", take("curves", lambda rows: [*range(5), *range(rows)])),
    ("not sorted by round", take("cohorts", lambda rows: [1, 0, *range(2, rows)])),
    ("not sorted by client", take("clients", lambda rows: [1, 0, *range(2, rows)])),
    ("runs.parquet .* a run twice", take("runs", lambda rows: [0, *range(rows)])),
    ("runs.parquet is not sorted", take("runs", lambda rows: range(rows)[::-1])),
    ("runs.parquet has no run", take("runs", lambda rows: range(1, rows))),
    ("no rows in cohorts", lambda tables: tables.pop("cohorts")),
    ("curves.parquet lacks values", column("curves", "value", None)),
    ("round is not a whole number", column("curves", "round", 1.5)),
    ("size lacks values", column("clients", "size", None)),
    ("seconds is 1.0, but", column("runs", "seconds", 1.0)),
    ("rounds_played is 7, but 100", column("runs", "rounds_played", 7)),
]


MANIFESTS: list[tuple[str, Callable[[Path, Manifest], object]]] = [
    ("name: ", lambda folder, manifest: manifest.update(name="../../x")),
    ("runs.parquet has 3 rows", lambda folder, manifest: manifest.update(runs=37)),
    ("curves.parquet has .* rows", files("curves.parquet", rows=1)),
    ("'../x.parquet' was unexpected", files("../x.parquet")),
    ("'cite' is a required", lambda folder, manifest: manifest.pop("cite")),
    ("would take 240 MB", bomb),
]


FORGERIES = [
    (sentence, what, change)
    for what, table in [("run", RUN), ("runs", SWAPS), ("tables", TABLES), ("manifest", MANIFESTS)]
    for sentence, change in table
]
