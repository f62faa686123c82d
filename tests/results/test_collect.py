"""What is collected of records: metrics derived from their histories, by hand or by scipy, and the table and its JSON."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import entropy

from cohort.core import UserError
from cohort.core.sealed_json import write_sealed
from cohort.records.history import History
from cohort.records.record import Record, write
from cohort.results import collect as collecting
from cohort.results.collect import PLACEHOLDER_ROW, CellResult, round_metrics, run_metrics
from cohort.results.series import (
    count_runs,
    label_columns,
    read_metric,
    runs_phrase,
    value_per_cell,
)
from cohort.settings import DEFAULTS

NAN = float("nan")
SETTINGS = {
    **{"dataset": "d", "model": "m", "partition": "iid", "J": "J1", "strategy": "fedavg"},
    **{"seed": 0, "cohort": 1, "batch": 1, "lr": 0.1, "rounds": 1},
    **{"selector": {"name": "random"}, "objective": {"name": "cross-entropy"}},
    **{"server": {"name": "average"}},
}
PROVENANCE = {
    **{"versions": {}, "commit": "", "trainer": "serial", "devices": ["cpu"], "sessions": [{}]},
    "peak_memory_mb": 1.0,
}
DIGEST = "k0123456789ab"


def record(counts: np.ndarray) -> Record:
    """A record of one round, of clients with these label counts."""
    sizes = counts.sum(axis=1)
    header = {
        **{"format": 1, "digest": DIGEST, "status": "done", "science": {}},
        **{"settings": SETTINGS | {"clients": len(counts)}, "weights_sha256": "0" * 64},
        "provenance": PROVENANCE,
    }
    history = History(cohorts=[np.array([0])])
    history.add_metrics(1, test_accuracy=0.5)
    arrays = {"size": sizes, "selected": sizes, "loss": sizes / 1.0, "accuracy": sizes / 1.0}
    return Record(header, history, arrays | {"label_counts": counts})


def collected(folder: Path, cells: list[dict[str, Any]], **options: Any) -> Path:
    """The metrics of these cells; those without a path are of the record in the folder."""
    default = {"path": str(folder / "r.h5"), "digest": DIGEST}
    plan = {"study": "s", "experiment": "e", "cells": [default | cell for cell in cells]}
    write_sealed(folder / "plan.json", plan)
    collecting.collect(folder / "plan.json", folder / "m.parquet", **options)
    return folder / "m.parquet"


def test_label_counts_are_rows_of_client_and_label(tmp_path: Path) -> None:
    """Counts of 0 are left out, except the last: it states the numbers of clients and labels."""
    write(tmp_path / "r.h5", record(np.array([[3, 0, 7, 0], [0, 0, 0, 0], [0, 1, 0, 0]])))
    file = collected(tmp_path, [{"labels": {"dataset": "d", "strategy": "fedavg", "seed": 0}}])
    rows = read_metric(file, "label_count")
    results = [(row.client, row.label, row.value) for row in rows.itertuples()]
    assert sorted(results) == [(0, 0, 3), (0, 2, 7), (2, 1, 1), (2, 3, 0)]
    assert rows["round"].isna().all()
    assert label_columns(pd.read_parquet(file)) == ["dataset", "strategy", "seed"]
    for metric, count in (("size", 3), ("test_accuracy", 1)):
        rows = read_metric(file, metric)
        assert len(rows) == count and rows["label"].isna().all()


def test_a_run_with_another_parameter_than_its_label_is_refused(tmp_path: Path) -> None:
    """As of a run made before the default of an axis's parameter was changed to that value."""
    made = record(np.array([[1, 0]]))
    made.header["settings"] |= {"selector": {"name": "ucb", "exploration": 0.5}}
    write(tmp_path / "r.h5", made)
    collected(tmp_path, [{"labels": {"seed": 0, "selector.exploration": 0.5, "server.beta": 1}}])
    collected(tmp_path, [{"labels": {"seed": 0, "selector.exploration": None}}])  # not on its axis
    with pytest.raises(UserError, match=r"exploration 0\.5, not 5\.0: change its default back"):
        collected(tmp_path, [{"labels": {"seed": 0, "selector.exploration": 5.0}}])


def test_numbers_and_names_may_be_mixed_on_an_axis(tmp_path: Path) -> None:
    values = (5, "10, last 10", None)
    cells = [{"digest": f"k{value}", "labels": {"evaluate": value}} for value in values]
    file = collected(tmp_path, cells, result_of=lambda path: CellResult("missing", PLACEHOLDER_ROW))
    assert read_metric(file, "size")["evaluate"].tolist() == ["10, last 10", "5", "–"]


def test_a_cell_in_two_panels_is_drawn_twice_and_counted_once(tmp_path: Path) -> None:
    write(tmp_path / "r.h5", record(np.array([[3, 0], [1, 1]])))
    file = collected(tmp_path, [{"labels": {"panel": panel}} for panel in ("left", "right")])
    metrics = read_metric(file, "test_accuracy")
    values = value_per_cell(metrics, "test_accuracy", "last")
    assert values[["panel", "value"]].to_numpy().tolist() == [["left", 0.5], ["right", 0.5]]
    assert runs_phrase(count_runs(metrics)) == "1 run"


def test_what_records_say_about_themselves_is_written_beside_the_metrics(tmp_path: Path) -> None:
    """Their settings with the defaults of younger ones, so that the same cells of two ages agree."""
    run = record(np.array([[3, 0], [1, 1]]))
    theirs = {"release": "theirs", "commit": ""}
    again = {"release": "theirs", "restored": [theirs]}
    run.header["restored"] = [again, {"release": "ours", "restored": [again]}]
    run.history.add_cost(1, seconds=2.5, bytes_up=1000.0)
    run.history.add_cost(2, seconds=1.5, bytes_up=500.0)
    run.header["settings"]["rounds"] = 2
    run.history.cohorts.append(np.array([1]))
    write(tmp_path / "r.h5", run)
    absent = {"path": "nowhere.h5", "digest": "k000000000000", "labels": {"seed": 1}}
    results = {"nowhere.h5": CellResult("missing", PLACEHOLDER_ROW)}
    results[str(tmp_path / "r.h5")] = collecting.read_result(tmp_path / "r.h5")
    collected(tmp_path, [{"labels": {"seed": 0}}, absent], result_of=results.__getitem__)
    there, missing = json.loads((tmp_path / "m.json").read_text())["cells"]
    assert (there["seconds"], there["bytes_up"], there["bytes_down"]) == (4.0, 1500.0, 0)
    assert there["settings"] == DEFAULTS | run.header["settings"] and there["devices"] == ["cpu"]
    assert there["settings"]["evaluate_next"] == 0
    assert there["restored"] == ["theirs", "ours (there from theirs)"]
    assert missing == absent | {"status": "missing"}


def history(cohorts: list[list[int]], **values: list[float]) -> History:
    """A history with these cohorts and, from the first round on, metrics and costs."""
    result = History(cohorts=list(map(np.array, cohorts)))
    for name, series in values.items():
        is_metric = name in ("test_loss", "test_accuracy", "tasks")
        for round, value in enumerate(series, start=1):
            (result.add_metrics if is_metric else result.add_cost)(round, **{name: value})
    return result


def test_gini_by_hand_and_by_its_definition() -> None:
    """One of four has all: 3/4. By definition, it is half the mean difference of all pairs over the mean."""
    assert collecting.gini(np.array([5, 5, 5])) == 0
    assert collecting.gini(np.array([0, 0, 8, 0])) == pytest.approx(0.75)
    counts = np.random.default_rng(1).integers(0, 30, 50)
    differences = np.abs(counts[:, None] - counts[None, :]).mean()
    assert collecting.gini(counts) == pytest.approx(differences / (2 * counts.mean()), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_longest_gap_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, size=60)  # 0: no client is available
    cohorts = [rng.choice(12, size, replace=False) for size in sizes]
    timelines = ["".join(".x"[client in cohort] for cohort in cohorts) for client in range(12)]
    gaps = [len(part) for timeline in timelines for part in timeline.split("x")]
    assert collecting.longest_gap(cohorts, 12) == max(gaps)
    assert collecting.longest_gap([np.array([0, 1])] * 3, 3) == 3  # client 2 never
    assert collecting.longest_gap([np.arange(3)] * 2, 3) == 0


def test_metrics_of_a_run() -> None:
    """Counts 3, 2, 1, 0; NaN is no loss. The highest accuracy, 0.75, is first that of round 2; until
    then two clients train for 2 s each in round 1, and two for 1.5 s in round 2."""
    run_history = history(
        [[0, 1], [0, 2], [0, 1]],
        test_loss=[2.0, 1.5, NAN],
        test_accuracy=[0.5, 0.75, 0.75],
        seconds_training=[4.0, 3.0, 8.0],
    )
    metrics = run_metrics(run_history, 4)
    assert metrics["loss_minimum_round"] == metrics["best_round"] == 2
    assert metrics["client_seconds_to_best"] == 3.5
    assert round_metrics(run_history)["client_seconds_training"] == [(1, 2), (2, 1.5), (3, 4)]
    names = ("never_selected", "least_selected", "most_selected", "longest_gap")
    assert [metrics[name] for name in names] == [1, 0, 3, 3]
    assert metrics["selection_entropy"] == pytest.approx(entropy([3, 2, 1, 0], base=4), rel=1e-12)
    assert metrics["selected_sd"] == pytest.approx(np.sqrt(1.25), rel=1e-12)
    assert run_metrics(history([[0]], test_loss=[1.0]), 1) == {"loss_minimum_round": 1}
    assert run_metrics(history([[0]], test_accuracy=[NAN]), 1) == {}


def test_how_much_the_accuracy_swings() -> None:
    """Changes of 0.2, -0.1 and 0.2 in rounds 6 to 9; 2 and 6 are no neighbors, and what was before
    does not count. The mean is 0.1, the deviations 0.1, -0.2 and 0.1, the variance 0.06 / 2."""
    run_history = history([[0]], test_accuracy=[0.0, 0.9])
    for round, accuracy in enumerate([0.1, 0.3, 0.2, 0.4], start=6):
        run_history.add_metrics(round, test_accuracy=accuracy)
    assert run_metrics(run_history, 1)["test_accuracy_swing"] == pytest.approx(0.03**0.5, rel=1e-12)
    assert "test_accuracy_swing" not in run_metrics(history([[0]], test_accuracy=[0.1, 0.2]), 1)


def test_rounds_without_anybody_and_the_client_at_the_tenth_percentile() -> None:
    """Two of three rounds have no cohort; the tenth percentile of the accuracies 0 to 10 is 1."""
    run_history = History(cohorts=[np.array([0]), np.array([], int), np.array([], int)])
    run_history.add_metrics(1, available=1.0)
    assert run_metrics(run_history, 2)["idle_rounds"] == 2
    result = collecting.result_of_record(record(np.arange(11)[:, None]))
    assert result.values.set_index("metric").at["tenth_percentile_accuracy", "value"] == 1


def test_metrics_of_rounds() -> None:
    """Ten labels in six tasks instead of ten; a quarter and three quarters of the time."""
    tasks = round_metrics(history([[0]], tasks=[6], client_steps=[10]))
    assert tasks == {"tasks_saved": [(1, pytest.approx(0.4))]}
    shares = round_metrics(history([], seconds=[4.0, 2.0], seconds_selecting=[1.0, 1.5]))
    assert shares == {"selecting_share": [(1, 0.25), (2, 0.75)]}
    assert round_metrics(History()) == {}


def test_metrics_of_clients() -> None:
    """Client 0 was probed twice, client 1 once, client 2 never."""
    run_history = History(
        pools=[np.array([0, 1]), np.array([0, 3])],
        norms=[np.array([1.0, 5.0]), np.array([2.0, 4.0])],
    )
    counts = np.array([[4, 0, 4], [0, 9, 0], [0, 0, 0], [1, 2, 3]])
    metrics = collecting.client_metrics(run_history, counts)
    assert metrics["probe_norm"] == pytest.approx([1.5, 5.0, NAN, 4.0], nan_ok=True)
    assert metrics["classes_held"].tolist() == [2, 1, 0, 3]
    assert "probe_norm" not in collecting.client_metrics(History(), counts)


def test_metrics_of_classes_and_baselines_without_a_model() -> None:
    """Clients hold most of class 1, which is a fifth of the test samples."""
    classes = {"tested": np.array([7, 2, 1, 0]), "right": np.array([7, 1, 0, 0])}
    counts = np.array([[3, 5, 0, 0], [0, 4, 1, 1]])
    by_class, metrics = collecting.class_metrics(counts, classes)
    assert by_class["class_accuracy"] == pytest.approx([1.0, 0.5, 0.0, NAN], nan_ok=True)
    assert metrics["majority_accuracy"] == 0.2
    assert metrics["target_entropy"] == pytest.approx(entropy([7, 2, 1]), rel=1e-12)
    assert collecting.class_metrics(np.ones((1, 2)), {}) == ({}, {})
