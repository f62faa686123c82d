"""Changes by which a release is forged, with checksums that fit: what follows is changed too."""

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
TEST = [f"test_{name}" for name in ("accuracy", "loss", "calibration_error", "classes_named")]
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


def session(**values: Any) -> Change:
    return lambda run: run.header["provenance"]["sessions"][0].update(values)


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


def reverse(run: Record) -> None:
    """Reverse the order of cohorts."""
    run.history.cohorts.reverse()
    run.history.responders.reverse()


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
