"""A small experiment whose numbers are drawn at random but always the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

PARTITIONS, WORK, SEEDS = ("dir-0.1", "iid"), ("J4", "J16"), (0, 1, 2)
STRATEGIES = ("fedavg", "loss", "fedentopt")
NAMES = ["FedAvg (random)", "Highest loss", "FedEntOpt"]
ROUNDS, CLIENTS = 12, 5
ORDERS = {"partition": [*PARTITIONS], "J": [*WORK], "strategy": [*STRATEGIES], "seed": [*SEEDS]}
STYLE = {
    "orders": ORDERS,
    "strategies": [*STRATEGIES],
    "titles": {"strategy": dict(zip(STRATEGIES, NAMES, strict=True))},
}
TYPES: Any = {"metric": "string", "round": "Int64", "client": "Int64", "label": "Int64"}
Fate = dict[tuple[str, str, str, int], tuple[str, int]]
Runs = Iterable[tuple[dict[str, Any], dict[int, float]]]
Metrics = Callable[..., Path]
Draw = Callable[..., Figure]
Spec = dict[str, Any]


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Metrics of these rows, which have the columns that they do not name."""
    common = {"study": "demo", "experiment": "main", "status": "done", "metric": None}
    common |= dict.fromkeys(("round", "client")) | {"value": float("nan")}
    frame = pd.DataFrame([common | row for row in rows])
    return frame.astype({name: kind for name, kind in TYPES.items() if name in frame})


def sample(fate: Fate | None = None) -> pd.DataFrame:
    """A small experiment; `fate` sets the status and the last round of some cells."""
    rows: list[dict[str, Any]] = []
    cells = itertools.product(PARTITIONS, WORK, STRATEGIES, SEEDS)
    for index, (partition, J, strategy, seed) in enumerate(cells):
        rng = np.random.default_rng(index)
        status, stop = (fate or {}).get((partition, J, strategy, seed), ("done", ROUNDS))
        cell = {"digest": f"k{index:012x}", "dataset": "digits", "model": "mlp", "classes": 10}
        cell |= {"partition": partition, "J": J, "strategy": strategy, "seed": seed}
        cell |= {"status": status}
        if status == "missing":
            rows.append(cell)
            continue
        for round in range(1, stop + 1):
            for metric in ("train_loss", "test_accuracy")[: 1 + (round % 2 == 0)]:
                rows.append(cell | {"metric": metric, "round": round, "value": rng.random()})
        for client in range(CLIENTS) if status == "done" else ():
            value = float(rng.integers(0, 9))
            rows.append(cell | {"metric": "selected", "client": client, "value": value})
    return frame_of(rows)


def note(figure: Figure) -> str:
    """The text below a figure."""
    return figure.get_supxlabel().replace("\n", " ")


def accuracy(partition: str, J: str, strategy: str) -> np.ndarray:
    """In percent, a row for each seed and a column for each evaluated round."""
    rows = sample().query(
        "metric == 'test_accuracy' and partition == @partition and J == @J and strategy == @strategy"
    )
    return rows.pivot(index="seed", columns="round", values="value").to_numpy() * 100
