"""What runs cost until they are as accurate as FedAvg ends, worked out by hand."""

import pandas as pd

from cohort.results.collect import TYPES, costs_to_baseline
from cohort.results.series import value_per_cell

ACCURACIES = {  # evaluated in rounds 2, 4, ... 14
    "fedavg": [0.2, 0.5, 0.7, 0.6, 0.8, 0.7, 0.7],  # the last ten rounds: mean 0.7, from round 6 on
    "fast": [0.6, 0.75, 0.6, 0.6, 0.6, 0.6, 0.6],  # in round 4, although not in the end
    "never": [0.69] * 7,
    "diverged": [0.9] * 7,
    "running": [0.9] * 7,
    "missing": [],
}
SECONDS = {"fedavg": 10.0, "fast": 3.0, "never": 1.0, "diverged": 2.0, "running": 1000.0}
STATUS = {"diverged": "diverged", "running": "unfinished", "missing": "missing"}


def table(seeds: tuple[int, ...] = (0, 1), strategies: dict = ACCURACIES) -> pd.DataFrame:
    """Runs of fourteen rounds, which take twice the time with seed 1."""
    rows = []
    for seed in seeds:
        for strategy, accuracies in strategies.items():
            head = {"digest": f"{strategy} {seed}", "strategy": strategy, "seed": seed}
            head["selector.pool"] = "2" if strategy == "fast" else None
            head["status"] = STATUS.get(strategy, "done")
            values = [("test_accuracy", 2 * n, x) for n, x in enumerate(accuracies, 1)]
            cost = SECONDS.get(strategy, 0) * (seed + 1)
            values += [("simulated_seconds", n, cost) for n in range(1, 15) if accuracies]
            values += [("bytes_down", n, 100.0) for n in range(1, 15) if accuracies]
            for metric, round, value in values or [(None, None, None)]:
                rows.append(head | {"metric": metric, "round": round, "value": value})
    return pd.DataFrame(rows).assign(client=None, label=None).astype(TYPES)


def costs(metrics: pd.DataFrame, metric: str) -> dict[str, float]:
    cells = value_per_cell(costs_to_baseline(metrics), metric, "last").dropna(subset="value")
    return dict(zip(cells["digest"], cells["value"], strict=True))


def test_seconds_by_hand():
    """FedAvg reaches 0.7 in round 6, `fast` in round 4. The others count with FedAvg's 14 rounds,
    which take longest; that a run takes longer that is not finished does not count."""
    first = {"fedavg 0": 60, "fast 0": 12, "never 0": 140, "diverged 0": 140}
    second = {"fedavg 1": 120, "fast 1": 24, "never 1": 280, "diverged 1": 280}
    assert costs(table(), "seconds_to_fedavg") == first | second


def test_bytes_and_who_reaches_it():
    cost = {"fedavg 0": 600, "fast 0": 400, "never 0": 1400, "diverged 0": 1400}
    assert costs(table((0,)), "bytes_down_to_fedavg") == cost
    reaches = {"fedavg 0": 1, "fast 0": 1, "never 0": 0, "diverged 0": 0}
    assert costs(table((0,)), "reaches_fedavg") == reaches
    named = table((0,)).assign(series=lambda rows: rows["strategy"])  # which is no setting
    assert costs(named, "reaches_fedavg") == reaches
    metrics = table((0,))
    early = (metrics["strategy"] == "diverged") & (metrics["metric"] == "test_accuracy")
    assert costs(metrics[~early], "reaches_fedavg") == reaches


def test_without_fedavg_nothing_is_said():
    others = {name: values for name, values in ACCURACIES.items() if name != "fedavg"}
    for metrics in (table(strategies=others), table().drop(columns="strategy")):
        assert costs_to_baseline(metrics).empty
    assert costs_to_baseline(table().assign(status="diverged")).empty


def test_costs_that_are_not_recorded_are_left_out():
    metrics = table((0,))
    timeless = metrics[metrics["metric"] != "simulated_seconds"]
    assert set(costs_to_baseline(timeless)["metric"]) == {"reaches_fedavg", "bytes_down_to_fedavg"}
