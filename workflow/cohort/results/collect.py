"""Collects an experiment's records into a tidy table, with metrics that follow from a record."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cohort.core import UserError, sealed_json, user_files
from cohort.records.history import PROFILE, History
from cohort.records.record import ARRAY_GROUPS, CLIENT_ARRAYS, Record, read
from cohort.results import names, series
from cohort.results.series import POSITIONS, finite_rows, label_columns, label_text, value_per_cell
from cohort.selection.entropy import entropy_bits
from cohort.settings import DEFAULTS
from cohort.training.cell import PARTS, Cell

COSTS = ("seconds", "bytes_up", "bytes_down", "client_steps")
"""What a run costs, in all its rounds together."""
ACCURACY = "test_accuracy"
COSTS_TO_BASELINE = {"simulated_seconds": "seconds_to_fedavg", "bytes_down": "bytes_down_to_fedavg"}

PLACEHOLDER_ROW = pd.DataFrame([dict.fromkeys(("metric", *POSITIONS)) | {"value": float("nan")}])
TYPES = {"metric": "string", **dict.fromkeys(POSITIONS, "Int64"), "value": "float64"}
Arrays = dict[str, np.ndarray]
Values = tuple[str, Any, dict[str, Any]]
"""A metric, its values, and their rounds (or steps), clients or labels."""


@dataclass(frozen=True)
class CellResult:
    """A cell's status, its metrics as rows of the table, and the `attributes_of` its record."""

    status: str
    values: pd.DataFrame
    attributes: dict[str, Any] = field(default_factory=dict)


def collect(
    plan: str | Path,
    output: str | Path,
    *,
    result_of: Callable[[str], CellResult] | None = None,
    sources: str = "",
) -> None:
    """Write the metrics of an experiment's cells as Parquet, a row per cell, metric and round (or
    step), client or class, and beside it as JSON the status and attributes of each cell.

    A cell that is shown in several panels is there once for each, under its digest with a number.
    `plan` is the experiment's JSON file; `result_of` reads a cell (default: its record); `sources`
    is a hash of the files that were read.
    """
    experiment = sealed_json.read_sealed(plan, "a plan file")
    heads, parts, runs, seen = [], [], [], Counter[str]()
    for cell in experiment["cells"]:
        seen[cell["digest"]] += 1
        again = f" {seen[cell['digest']]}" if seen[cell["digest"]] > 1 else ""
        result = (result_of or read_result)(cell["path"])
        _check_labels(cell, result.attributes.get("settings", {}))
        runs.append(cell | {"status": result.status} | result.attributes)
        parts.append(result.values if len(result.values) else PLACEHOLDER_ROW)
        head = {key: experiment[key] for key in ("study", "experiment")}
        head |= {"digest": cell["digest"] + again, **cell["labels"], "status": result.status}
        head["share"] = cell.get("share", 1.0)
        heads.append(head)
    labels = pd.DataFrame(heads)
    for name, column in labels.items():  # as text if of several types, which Parquet cannot hold
        if column.dropna().map(type).nunique() > 1:
            labels[name] = column.map(label_text)
    texts = [*labels.select_dtypes("str").columns.drop("digest")]  # each of few values
    labels = labels.astype(dict.fromkeys(texts, "category"))
    labels = labels.loc[labels.index.repeat(list(map(len, parts)))].reset_index(drop=True)
    table = labels.join(pd.concat(parts, ignore_index=True)).astype(TYPES)
    table = pd.concat([table, costs_to_baseline(table).astype(TYPES)], ignore_index=True)
    series.write_metrics(output, table, {**experiment, "cells": runs}, sources)


def _check_labels(cell: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Raise UserError for a run that a changed default has put under a label of another value."""
    for label, value in cell["labels"].items():
        part, _, name = label.partition(".")
        if name and value not in (None, trained := settings.get(part, {}).get(name, value)):
            fix = "change its default back, or raise the component's science version"
            raise UserError(f"{cell['path']} has {label} {trained}, not {value}: {fix}")


def read_result(path: str | Path) -> CellResult:
    """Read the status, metrics and attributes of a finished cell from its record."""
    return result_of_record(read(path))


def result_of_record(record: Record) -> CellResult:
    """The status, metrics and attributes of a finished cell, from its record in memory."""
    history, counts = record.history, record.clients["label_counts"]
    by_step, profiled = step_metrics(history, len(counts))
    by_client = {name: record.clients[name] for name in CLIENT_ARRAYS} | profiled
    by_client |= client_metrics(history, counts)
    by_class, baselines = class_metrics(counts, record.classes)
    by_run, last = run_metrics(history, len(counts)) | baselines, [len(history.cohorts)]
    reached = record.clients["accuracy"][np.isfinite(record.clients["accuracy"])]
    if len(reached):  # of the final model on own samples: what nine in ten clients exceed
        by_run["tenth_percentile_accuracy"] = float(np.percentile(reached, 10))
    is_stated = counts > 0
    is_stated[-1, -1] = True  # states how many clients and classes exist
    clients, labels = np.nonzero(is_stated)
    parts: list[Values] = list(values_by_round(history))
    parts += [(name, [value], {"round": last}) for name, value in by_run.items()]
    parts += [(name, array, {"round": range(1, len(array) + 1)}) for name, array in by_step.items()]
    parts += [(name, array, {"client": range(len(array))}) for name, array in by_client.items()]
    parts += [(name, array, {"label": range(len(array))}) for name, array in by_class.items()]
    parts.append(("label_count", counts[is_stated], {"client": clients, "label": labels}))
    return CellResult(record.header["status"], metric_table(parts), attributes_of(record))


def attributes_of(record: Record) -> dict[str, Any]:
    """The settings of a record with the defaults of younger ones, its provenance, the releases that
    it was restored from, and its cost summed over rounds, for JSON."""
    header, cost = record.header, record.history.cost
    provenance = header["provenance"]
    return {
        "settings": settings_with_defaults(header["settings"]),
        "restored": list(map(_origin, header.get("restored", ()))),
        "started": provenance["sessions"][-1].get("started", ""),
        "sessions": len(provenance["sessions"]),
        **{key: provenance[key] for key in ("commit", "trainer", "devices", "peak_memory_mb")},
        "versions": provenance["versions"],
        "my": user_files.module_versions(provenance),
        **{name: sum(dict(cost.get(name, ())).values()) for name in COSTS},
    }


def _origin(source: Mapping[str, Any]) -> str:
    """A release's name, followed by the releases from which it had taken the run: `ours (there from
    theirs)`. A release that was exported over itself is not named twice."""
    name, sources = source["release"], map(_origin, source.get("restored", ()))
    earlier = " and ".join(other for other in sources if other != name)
    return f"{name} (there from {earlier})" if earlier else name


def settings_with_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A record's settings, with defaults for newer ones and without parameters that are gone."""
    parts = {}
    for part, components in PARTS.items():
        spec, name = settings[part], settings[part]["name"]
        parts[part] = components[name].from_spec(spec).spec() if name in components else spec
    return DEFAULTS | dict(settings) | parts


def differences_from(record: Record, cell: Cell) -> Iterator[str]:
    """Describe how a record differs from a cell: settings, parameters, science versions."""
    stated = settings_with_defaults(record.header["settings"])
    yield from _differences(stated, cell.plain_settings())
    science = record.header["science"]
    for key in science | cell.science:
        old, new = science.get(key, 1), cell.science.get(key, 1)  # a missing version is 1
        if old != new:
            yield f"science version {old} of {key}, the cell {new}"


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Describe how settings differ; parameters of a strategy's parts as `selector.buffer`."""
    for key in {**there, **here}:
        old, new = there.get(key, "unset"), here.get(key, "unset")
        if isinstance(old, dict) and isinstance(new, dict):
            yield from (f"{key}.{difference}" for difference in _differences(old, new))
        elif old != new:
            yield f"{key} {old}, the cell {new}"


def is_same(first: Record, second: Record) -> bool:
    """Whether two runs of a cell agree to the last bit in all but provenance, measured seconds, and
    the sizes of ciphertexts, whose keys never come from the seed."""
    arrays, others = _seeded_arrays(first), _seeded_arrays(second)
    return (
        all(first.header[key] == second.header[key] for key in ("status", "weights_sha256"))
        and arrays.keys() == others.keys()
        and all(np.array_equal(arrays[name], others[name], equal_nan=True) for name in arrays)
    )


def _seeded_arrays(record: Record) -> dict[str, np.ndarray]:
    """All arrays of a record by path but those that the seed does not decide."""
    arrays = record.history.arrays()
    for group in ARRAY_GROUPS:
        arrays |= {f"{group}/{name}": array for name, array in getattr(record, group).items()}
    is_encrypted = record.header["settings"]["procedure"] == "masked-labels"
    unseeded = re.compile("/seconds|/bytes|^traffic/" if is_encrypted else "/seconds")
    return {path: array for path, array in arrays.items() if not unseeded.search(path)}


def values_by_round(history: History) -> Iterator[Values]:
    """Each metric and cost that is recorded by round."""
    for name, pairs in (history.metrics | history.cost | round_metrics(history)).items():
        rounds, values = zip(*pairs, strict=True) if pairs else ((), ())
        yield name, values, {"round": rounds}


def metric_table(parts: Sequence[Values]) -> pd.DataFrame:
    """A row per value with metric, round, client and label, missing where a metric has none."""
    if not parts:
        return PLACEHOLDER_ROW.iloc[:0]
    metrics, values, positions = zip(*parts, strict=True)
    lengths = list(map(len, values))
    columns: dict[str, Any] = {"metric": np.repeat(metrics, lengths)}
    for name in POSITIONS:
        missing = np.repeat([name not in position for position in positions], lengths)
        filled = [
            np.asarray(position.get(name, np.zeros(length)), np.int64)
            for position, length in zip(positions, lengths, strict=True)
        ]
        columns[name] = pd.arrays.IntegerArray(np.concatenate(filled), missing)
    columns["value"] = np.concatenate([np.asarray(part, np.float64) for part in values])
    return pd.DataFrame(columns)


def run_metrics(history: History, clients: int) -> dict[str, float]:
    """The metrics of a whole run that follow from its history: its best rounds, the mean client's
    training time up to the most accurate one, how much the accuracy changes (the standard deviation
    over the last rounds that are all evaluated), and how evenly clients are selected."""
    metrics: dict[str, float] = {}
    losses, accuracies = (history.metrics.get(name, ()) for name in ("test_loss", ACCURACY))
    if finite_losses := [(value, round) for round, value in losses if np.isfinite(value)]:
        metrics["loss_minimum_round"] = min(finite_losses)[1]
    if negated := [(-value, round) for round, value in accuracies if np.isfinite(value)]:
        best = metrics["best_round"] = min(negated)[1]  # the first of the highest
        if seconds := [value for round, value in client_seconds(history) if round <= best]:
            metrics["client_seconds_to_best"] = sum(seconds)
    changes: list[float] = []
    for (earlier, before), (later, after) in itertools.pairwise(accuracies):
        if later > earlier + 1:
            changes.clear()
        elif np.isfinite(after - before):
            changes.append(after - before)
    if len(changes) > 1:
        metrics["test_accuracy_swing"] = float(np.std(changes, ddof=1))
    if "available" in history.metrics:
        metrics["idle_rounds"] = sum(not len(cohort) for cohort in history.cohorts)
    if clients == 1 or not any(map(len, history.cohorts)):
        return metrics
    counts = np.bincount(np.concatenate(history.cohorts), minlength=clients)
    return metrics | {
        "selection_gini": gini(counts),
        "selection_entropy": float(entropy_bits(counts) / np.log2(clients)),
        "longest_gap": longest_gap(history.cohorts, clients),
        "never_selected": int((counts == 0).sum()),
        "least_selected": int(counts.min()),
        "most_selected": int(counts.max()),
        "selected_sd": float(counts.std()),
    }


def client_seconds(history: History) -> list[tuple[int, float]]:
    """Pairs of round and seconds of training, divided by the clients chosen, answered or not."""
    training = history.cost.get("seconds_training", [])
    return [(round, value / max(1, len(history.cohorts[round - 1]))) for round, value in training]


def round_metrics(history: History) -> dict[str, list[tuple[int, float]]]:
    """By round: its share of time for selecting, the mean client's training time, tasks saved."""
    costs = history.cost
    whole, labels = dict(costs.get("seconds", ())), dict(costs.get("client_steps", ()))
    selecting, tasks = costs.get("seconds_selecting", ()), history.metrics.get("tasks", ())
    by_name = {
        "selecting_share": [
            (round, value / whole[round]) for round, value in selecting if whole.get(round)
        ],
        "client_seconds_training": client_seconds(history),
        "tasks_saved": [(round, 1 - value / labels[round]) for round, value in tasks],
    }
    return {name: values for name, values in by_name.items() if values}


def client_metrics(history: History, label_counts: np.ndarray) -> Arrays:
    """By client: the classes that it holds and, if any is probed, its probes' mean norm or NaN."""
    metrics: Arrays = {"classes_held": (label_counts > 0).sum(axis=1)}
    if history.pools:
        pools, norms = np.concatenate(history.pools), np.concatenate(history.norms)
        metrics["probe_norm"] = _group_means(norms, pools, len(label_counts))
    return metrics


def step_metrics(history: History, clients: int) -> tuple[Arrays, Arrays]:
    """A profiled run's accuracy by round, and its means by step within a client's work and by
    client, NaN for one that took no step; empty for a run that was not profiled."""
    if not history.profile:
        return {}, {}
    notes = dict(zip(PROFILE, np.concatenate(history.profile).T, strict=True))
    client, step = notes["client"].astype(int), notes["step"].astype(int)
    rounds, by_client = notes["round"].astype(int), {}
    by_step = {"minibatch_accuracy": _group_means(notes["accuracy"], rounds - 1, rounds.max())}
    for name in PROFILE[-3:]:
        by_step[f"step_{name}"] = _group_means(notes[name], step, int(step.max()) + 1)
        by_client[f"batch_{name}"] = _group_means(notes[name], client, clients)
    return by_step, by_client


def _group_means(values: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """The mean value of each of `count` groups, given by index; NaN for a group without any."""
    return _shares(np.bincount(groups, values, count), np.bincount(groups, minlength=count))


def _shares(parts: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    """Each part divided by its whole; NaN where that is 0."""
    return np.divide(parts, wholes, out=np.full(len(wholes), np.nan), where=wholes > 0)


def class_metrics(label_counts: np.ndarray, classes: Arrays) -> tuple[Arrays, dict[str, float]]:
    """The final model's accuracy by class, NaN without test samples; and two baselines: the entropy
    of the test labels, the lowest loss of a constant prediction, and the accuracy of always
    predicting the class that clients hold most of."""
    if not classes:
        return {}, {}
    tested = classes["tested"]
    majority = tested[label_counts.sum(axis=0).argmax()] / tested.sum()
    entropy = float(entropy_bits(tested) * np.log(2))
    by_class = {"class_accuracy": _shares(classes["right"], tested)}
    return by_class, {"target_entropy": entropy, "majority_accuracy": float(majority)}


def gini(counts: np.ndarray) -> float:
    """The Gini coefficient: 0 if all counts are equal, near 1 if one client has everything."""
    ranks = np.arange(1, len(counts) + 1)
    weighted = ((2 * ranks - len(counts) - 1) * np.sort(counts)).sum()
    return float(weighted / (len(counts) * counts.sum()))


def longest_gap(cohorts: list[np.ndarray], clients: int) -> int:
    """The most rounds in a row in which a client was not selected, over all clients."""
    last, longest = np.zeros(clients, dtype=np.int64), 0
    for round, cohort in enumerate(cohorts, start=1):
        longest = max(longest, int((round - last[cohort]).max(initial=1)) - 1)
        last[cohort] = round
    return max(longest, int((len(cohorts) - last).max()))


def costs_to_baseline(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rows that say whether each finished run reaches the accuracy of FedAvg's last ten rounds in
    its setting and with its seed, and what it has cost by then.

    A run that diverges, or never reaches it, counts with the highest cost of all runs of its
    setting and seed, since cheap rounds that lead nowhere are no gain. Nothing is said of a setting
    in which FedAvg has no result or diverges.
    """
    if "strategy" not in metrics:
        return metrics.iloc[:0]
    cells = value_per_cell(metrics, ACCURACY, "last-10").set_index("digest")
    cells = cells[cells["status"].isin(["done", "diverged"])]
    done = cells[cells["status"] == "done"]
    # The setting and seed of each run: its labels but the strategy and that one's parameters.
    labels = [
        name
        for name in label_columns(metrics)
        if name not in ("strategy", names.SERIES) and "." not in name
    ]
    texts = map(str, cells[labels].itertuples(index=False, name=None))
    contests = pd.Series(texts, cells.index, dtype=str)
    baseline = done[done["strategy"] == names.BASELINE]["value"]
    goals = contests.map(baseline.groupby(contests[baseline.index]).first()).dropna()
    accuracies = finite_rows(metrics, ACCURACY)
    accuracies = accuracies[accuracies["digest"].isin(done.index)]
    is_enough = accuracies["value"] >= accuracies["digest"].map(goals).astype(float)
    reached = accuracies[is_enough].groupby("digest")["round"].min()
    values = {"reaches_fedavg": pd.Series(goals.index.isin(reached.index), goals.index, float)}
    for cost, name in COSTS_TO_BASELINE.items():
        rows = finite_rows(metrics, cost)
        rows = rows[rows["digest"].isin(goals.index)]
        total = rows.groupby("digest")["value"].sum()
        until = rows[rows["round"].astype(float) <= rows["digest"].map(reached).astype(float)]
        spent = until.groupby("digest")["value"].sum()
        values[name] = spent.reindex(total.index).fillna(total.groupby(contests).transform("max"))
    heads = metrics.drop_duplicates("digest").set_index("digest")
    last = metrics.groupby("digest")["round"].max()  # a diverged run may never be evaluated
    heads = heads.assign(round=last, client=None, label=None)
    parts = [
        heads.loc[column.index].assign(metric=name, value=column).reset_index()
        for name, column in values.items()
    ]
    return pd.concat(parts)[metrics.columns]
