"""Records of runs that never took place, with everything that a record may hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from cohort.records.history import History
from cohort.records.record import Record

CLIENTS, ROUNDS, CLASSES = 4, 3, 5


def random_record(seed: int, **settings: Any) -> Record:
    """A valid record with random numbers; some seeds probe, profile, diverge, lack a loss, or have
    clients that do not respond."""
    rng = np.random.default_rng(seed)
    diverged = seed % 5 == 4
    rounds = 2 if diverged else ROUNDS
    history = History()
    for round in range(1, rounds + 1):
        history.add_metrics(
            round, train_loss=rng.normal(), cohort_entropy=np.inf if diverged else 1.5
        )
        if round % 2 == 1:
            history.add_metrics(round, test_accuracy=np.nan if diverged else rng.random())
        history.add_cost(round, seconds=rng.random(), bytes_up=12)
        cohort = rng.permutation(CLIENTS)[: 1 + round % 2]
        history.cohorts.append(cohort)
        history.responders.append(cohort[: 1 if seed % 6 == 3 else None])
        if seed % 3 == 0:
            history.pools.append(rng.permutation(CLIENTS)[:3])
            history.norms.append(rng.random(3, np.float32))
        if seed % 4 == 1:
            history.profile.append(np.column_stack([[round, round], rng.random((2, 5))]))
    history.add_traffic({"model": {"server": 7, "clients": 14}})
    counts = rng.integers(0, 9, (CLIENTS, CLASSES))
    clients = {
        "size": counts.sum(axis=1),
        "selected": rng.integers(0, 3, CLIENTS),
        "loss": np.where(counts.sum(axis=1) > 18, np.nan, rng.random(CLIENTS)),
        "accuracy": rng.random(CLIENTS),
        "label_counts": counts,
    }
    if seed % 2:
        clients["cluster"] = rng.integers(-1, 2, CLIENTS)
    classes = {"tested": np.full(CLASSES, 9), "right": rng.integers(0, 9, CLASSES)}
    return Record(_header(seed, diverged, settings), history, clients, classes if seed % 7 else {})


def _header(seed: int, diverged: bool, settings: dict[str, Any]) -> dict[str, Any]:
    provenance = {
        "versions": {"torch": "2.0", "numpy": "2.1"} | ({"tenseal": "0.3"} if seed % 2 else {}),
        "commit": "abc",
        "trainer": "native",
        "devices": ["a CPU", "another"][: 1 + seed % 2],
        "sessions": [{"started": "2026-01-01T00:00:00+00:00", "from_round": 0}],
        "peak_memory_mb": 100.5,
    }
    if seed % 2:
        provenance["my"] = {"selection/mine.py": "0" * 64}
    return {
        "format": 1,
        "digest": f"k{seed:012x}",
        "status": "diverged" if diverged else "done",
        "settings": {
            "clients": CLIENTS,
            "rounds": ROUNDS,
            "lr": 0.1 / (seed + 1),
            "evaluate_every": 2 if seed % 2 else "1 until 2, 3",
            "selector": {"name": "entropy", "buffer": 0.5} if seed % 2 else {"name": "random"},
            "seed": seed,
        }
        | settings,
        "science": {"selector:random": 1, "model:cnn": 2},
        "weights_sha256": f"{seed:064x}",
        "provenance": provenance,
    }


def assert_same(first: Record, second: Record) -> None:
    """Fail unless two records hold the same, to the last bit."""
    assert first.header == second.header
    for arrays, others in (
        (first.history.arrays(), second.history.arrays()),
        (first.clients, second.clients),
        (first.classes, second.classes),
    ):
        assert arrays.keys() == others.keys()
        for name, array in arrays.items():
            assert array.dtype == others[name].dtype, name
            assert np.array_equal(array, others[name], equal_nan=True), name
