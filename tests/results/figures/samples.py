"""A small experiment whose numbers are drawn at random but always the same."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

PARTITIONS, WORK, STRATEGIES, SEEDS, ROUNDS, CLIENTS = (
    ("dir-0.1", "iid"),
    ("J4", "J16"),
    ("fedavg", "loss", "fedentopt"),
    (0, 1, 2),
    12,
    5,
)
LOOK = {
    "orders": {
        "partition": list(PARTITIONS),
        "J": list(WORK),
        "strategy": list(STRATEGIES),
        "seed": list(SEEDS),
    },
    "strategies": ["fedavg", "loss", "fedentopt"],
    "titles": {
        "strategy": {"fedavg": "FedAvg (random)", "loss": "Highest loss", "fedentopt": "FedEntOpt"}
    },
}
Fate = dict[tuple[str, str, str, int], tuple[str, int]]


def sample(fate: Fate | None = None) -> pd.DataFrame:
    """A small experiment; `fate` sets the status and the last round of some cells."""
    rows: list[dict[str, Any]] = []
    for index, (partition, J, strategy, seed) in enumerate(
        itertools.product(PARTITIONS, WORK, STRATEGIES, SEEDS)
    ):
        rng = np.random.default_rng(index)
        status, stop = (fate or {}).get((partition, J, strategy, seed), ("done", ROUNDS))
        labels = {
            "dataset": "digits",
            "model": "mlp",
            "partition": partition,
            "J": J,
            "strategy": strategy,
            "seed": seed,
        }
        cell = {
            "digest": f"k{index:012x}",
            "study": "demo",
            "experiment": "main",
            **labels,
            "status": status,
            "classes": 10,
        }
        if status == "missing":
            rows.append(
                cell | {"metric": None, "round": None, "client": None, "value": float("nan")}
            )
        for round in range(1, stop + 1) if status != "missing" else ():
            rows.append(
                cell
                | {
                    "metric": "train_loss",
                    "round": round,
                    "client": None,
                    "value": float(rng.random()),
                }
            )
            if round % 2 == 0:
                rows.append(
                    cell
                    | {
                        "metric": "test_accuracy",
                        "round": round,
                        "client": None,
                        "value": float(rng.random()),
                    }
                )
        for client in range(CLIENTS) if status == "done" else ():
            rows.append(
                cell
                | {
                    "metric": "selected",
                    "round": None,
                    "client": client,
                    "value": float(rng.integers(0, 9)),
                }
            )
    return pd.DataFrame(rows).astype({"metric": "string", "round": "Int64", "client": "Int64"})
