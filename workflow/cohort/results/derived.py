"""Metrics derived from a record, of the run, of each client and of each class; not stored in it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from cohort.records.history import PROFILE, History
from cohort.selection.entropy import entropy_bits

Arrays = dict[str, np.ndarray]


def run_metrics(history: History, clients: int) -> dict[str, float]:
    """The metrics of a whole run that follow from its history.

    With a finite test loss or accuracy: the round of the lowest loss; the first one of the highest
    accuracy, and the mean client's training time up to its end. With three accuracies in a row:
    `test_accuracy_swing`, the standard deviation of the changes from one round to the next. With
    several clients: how evenly they are selected.
    """
    metrics: dict[str, float] = {}
    losses, accuracies = (
        [(value, round) for round, value in history.metrics.get(name, ()) if np.isfinite(value)]
        for name in ("test_loss", "test_accuracy")
    )
    if losses:
        metrics["loss_minimum_round"] = min(losses)[1]
    steps = itertools.pairwise(history.metrics.get("test_accuracy", ()))
    changes = [after[1] - before[1] for before, after in steps if after[0] == before[0] + 1]
    changes = [change for change in changes if np.isfinite(change)]
    if len(changes) > 1:
        metrics["test_accuracy_swing"] = float(np.std(changes, ddof=1))
    if accuracies:
        best = max(accuracies, key=lambda pair: (pair[0], -pair[1]))[1]
        metrics["best_round"] = best
        seconds = [value for round, value in client_seconds(history) if round <= best]
        metrics |= {"client_seconds_to_best": sum(seconds)} if seconds else {}
    if clients == 1 or not history.cohorts:
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
    """Pairs of a round and its seconds of training divided by the clients chosen, answered or
    not."""
    training = history.cost.get("seconds_training", [])
    return [(round, value / max(1, len(history.cohorts[round - 1]))) for round, value in training]


def round_metrics(history: History) -> dict[str, list[tuple[int, float]]]:
    """Metrics by round: the share of its time that was spent on selecting, evaluations for it
    included, the mean client's training time, and how many tasks of several labels save."""
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
    """Metrics by client: the diversity of its labels and, if probed, the mean norm of its probes.

    The norm of a client that was never probed is NaN.
    """
    metrics = {
        "classes_held": (label_counts > 0).sum(axis=1),
        "label_entropy": entropy_bits(label_counts),
    }
    if history.pools:
        pools, norms = np.concatenate(history.pools), np.concatenate(history.norms)
        metrics["probe_norm"] = _group_means(norms, pools, len(label_counts))
    return metrics


def tenth_percentile_accuracy(accuracies: np.ndarray) -> dict[str, float]:
    """The accuracy on own samples, by the final model, that nine in ten clients exceed, as a
    metric; empty if no client has samples."""
    reached = accuracies[np.isfinite(accuracies)]
    return {"tenth_percentile_accuracy": float(np.percentile(reached, 10))} if len(reached) else {}


def step_metrics(history: History, clients: int) -> tuple[Arrays, Arrays]:
    """The means of a profiled run's loss, accuracy and seconds: by step within a client's work,
    over all clients and rounds that took it, and by client, NaN for one that took no step. Both are
    empty for a run that was not profiled."""
    if not history.profile:
        return {}, {}
    notes = dict(zip(PROFILE, np.concatenate(history.profile).T, strict=True))
    client, step = notes["client"].astype(int), notes["step"].astype(int)
    by_step, by_client = {}, {}
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


def class_metrics(classes: Mapping[str, np.ndarray]) -> Arrays:
    """The final model's accuracy on each class's test samples; NaN for a class without any."""
    return {"class_accuracy": _shares(classes["right"], classes["tested"])} if classes else {}


def label_baselines(
    label_counts: np.ndarray, classes: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """Metrics of baselines that need no model: the entropy of the test labels, the lowest loss of a
    constant prediction, and the accuracy of always predicting the class of which clients hold the
    most samples."""
    if not classes:
        return {}
    tested = classes["tested"]
    return {
        "target_entropy": float(entropy_bits(tested) * np.log(2)),
        "majority_accuracy": float(tested[label_counts.sum(axis=0).argmax()] / tested.sum()),
    }


def gini(counts: np.ndarray) -> float:
    """The Gini coefficient: 0 if all counts are equal, near 1 if one client has everything."""
    ranks = np.arange(1, len(counts) + 1)
    weighted = ((2 * ranks - len(counts) - 1) * np.sort(counts)).sum()
    return float(weighted / (len(counts) * counts.sum()))


def longest_gap(cohorts: list[np.ndarray], clients: int) -> int:
    """The most rounds in a row in which a client was not selected, over all clients."""
    last, longest = np.zeros(clients, dtype=np.int64), 0
    for round, cohort in enumerate(cohorts, start=1):
        longest = max(longest, int((round - last[cohort]).max()) - 1)
        last[cohort] = round
    return max(longest, int((len(cohorts) - last).max()))
