"""A study's page from files written by hand: two partitions, two strategies, two seeds, of which one run is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cohort.metrics.files import write_metrics
from cohort.report.page import write_page

Spec = dict[str, Any]
PNG = b"\x89PNG not really"
CSV = """\
partition,strategy,metric,at,mean,sd,low,high,n,planned,finished,diverged,best
dir-0.1,fedavg,test_accuracy,last,0.52,0.028284,0.266,0.774,2,2,2,0,0
dir-0.1,fedentopt,test_accuracy,last,0.6,,,,1,2,2,1,1
iid,fedavg,test_accuracy,last,0.7,0.014142,0.573,0.827,2,2,2,0,1
iid,fedentopt,test_accuracy,last,,,,,0,2,0,0,0
"""
ACCURACY = {"fedavg": (0.5, 0.54), "fedentopt": (0.6, None)}
SETTINGS = {
    "dataset": "digits",
    "model": "mlp",
    "J": "J4",
    "rounds": 10,
    "selector": {"name": "random"},
}


def cell(partition: str, strategy: str, seed: int, *, there: bool = True) -> dict[str, Any]:
    """A cell as `collect` describes it, with ten seconds and two megabytes if its record is there."""
    labels = {
        "dataset": "digits",
        "model": "mlp",
        "partition": partition,
        "J": "J4",
        "strategy": strategy,
        "seed": seed,
    }
    digest = f"k{partition[0]}{strategy[3]}{seed}".ljust(13, "0")
    known = {"digest": digest, "path": f"results/cells/{digest}.h5", "labels": labels}
    if not there:
        return known | {"status": "missing"}
    facts = {
        "settings": SETTINGS | {"partition": partition, "strategy": strategy, "seed": seed},
        **{
            "started": f"2026-0{seed + 1}-15T10:00:00+00:00",
            "sessions": 1,
            "commit": f"abc{seed}",
            "trainer": "native",
        },
        **{"devices": ["Xeon <1>"], "peak_memory_mb": 300.0, "versions": {"torch": "2.9"}},
        "my": {"my.selection.mine": [f"{seed}" * 64]},
        **{"seconds": 10.0, "bytes_up": 2e6, "bytes_down": 2e6, "client_steps": 40},
    }
    return known | {"status": "done"} | facts


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    """A study with a figure, a figure without runs, a table and a claim, each with its files."""
    cells = [
        cell(
            partition,
            strategy,
            seed,
            there=partition == "dir-0.1" and (strategy, seed) != ("fedentopt", 1),
        )
        for partition in ("dir-0.1", "iid")
        for strategy in ("fedavg", "fedentopt")
        for seed in (0, 1)
    ]
    experiments = {"main": cells[:4], "later": cells[4:]}
    for name, own in experiments.items():
        experiment = {"study": "demo", "experiment": name, "cells": own}
        write_metrics(tmp_path / f"{name}.parquet", metrics(own), experiment)
    drawn = tmp_path / "drawn"
    drawn.mkdir()
    (drawn / "fig1.png").write_bytes(PNG)
    (drawn / "tab1.csv").write_text(CSV)
    (drawn / "claims.json").write_text(json.dumps([CLAIM]))
    figure = {
        "kind": "curves",
        "fields": {"metric": "test_accuracy"},
        "x": "Round",
        "y": ["Test accuracy (%)"],
        "shown": ["strategy"],
        "metric": "test_accuracy",
        "at": "last",
    }
    return {
        **{
            "name": "demo",
            "title": "Demo",
            "description": "What it is.",
            "source": {},
            "scale": "full",
            "notes": [],
            "my": {},
        },
        "titles": {"strategy": {"fedavg": "FedAvg", "fedentopt": "FedEntOpt"}},
        "experiments": {
            name: {
                "runs": str(tmp_path / f"{name}.json"),
                "seconds": {one["digest"]: 3600.0 for one in own},
            }
            for name, own in experiments.items()
        },
        "figures": [
            figure | item(tmp_path, "fig1", "main", ("png", "pdf", "svg")),
            figure | item(tmp_path, "fig2", "later", ("png", "pdf", "svg")),
        ],
        "tables": [item(tmp_path, "tab1", "main", ("csv", "md", "tex"))],
        "claims": [str(drawn / f"claims.{ending}") for ending in ("csv", "md", "tex", "json")],
        **{"claims_command": "snakemake demo_claims", "command": "snakemake demo"},
    }


def item(folder: Path, name: str, experiment: str, endings: tuple[str, ...]) -> Spec:
    return {
        "name": name,
        "title": f"Title of {name}",
        "caption": f"Caption of {name}.",
        "experiment": experiment,
        "metrics": str(folder / f"{experiment}.parquet"),
        "orders": {"strategy": ["fedavg", "fedentopt"], "partition": ["dir-0.1", "iid"]},
        "command": f"snakemake demo_{name}",
        "files": [str(folder / "drawn" / f"{name}.{ending}") for ending in endings],
    }


def metrics(cells: list[dict[str, Any]]) -> pd.DataFrame:
    rows = []
    for one in cells:
        labels = one["labels"]
        value = ACCURACY[labels["strategy"]][labels["seed"]] if one["status"] == "done" else None
        known = {
            "digest": one["digest"],
            **labels,
            "status": one["status"],
            "metric": "test_accuracy" if value else None,
        }
        rows.append(known | {"round": 10, "client": None, "value": value})
    return pd.DataFrame(rows)


POINT = {"experiment": "main", "at": "last"}
CLAIM: dict[str, Any] = {
    **{
        "claim": "better",
        "says": "FedEntOpt is better.",
        "where": "Section 1",
        "kind": "gain",
        "metric": "test_accuracy",
        "at": "last",
    },
    **{
        "measured": "undecided",
        "paper": "held",
        "n": 3,
        "planned": 4,
        "diverged": 0,
        "doubtful": "",
        "gap": "nine seeds would do",
        "paper_gap": "",
    },
    "comparisons": [
        {
            **{
                "name": "dir-0.1",
                "measured": "undecided",
                "paper": "held",
                "shown": "",
                "paper_shown": "",
            },
            "difference": {
                "mean": "+8.00",
                "low": "-1.00",
                "high": "+17.00",
                "seeds": "above 0 in 1 of 2 seeds",
            },
            "points": [
                POINT
                | {
                    "name": "FedEntOpt",
                    "labels": {"partition": "dir-0.1", "strategy": "fedentopt"},
                    "paper": "61.00",
                }
                | {"ours": {"mean": "60.00", "n": 1, "planned": 2}},
                POINT
                | {
                    "name": "FedAvg",
                    "labels": {"partition": "dir-0.1", "strategy": "fedavg"},
                    "paper": "47.00",
                }
                | {
                    "ours": {
                        "mean": "52.00",
                        "sd": "2.83",
                        "low": "26.60",
                        "high": "77.40",
                        "n": 2,
                        "planned": 2,
                    }
                },
            ],
        }
    ],
}


@pytest.fixture
def page(tmp_path: Path) -> Callable[[Spec], str]:
    """Writes the page of a spec and returns its HTML."""

    def write(spec: Spec) -> str:
        write_page(spec, [tmp_path / "report/demo.html", tmp_path / "report/demo.json"])
        return (tmp_path / "report/demo.html").read_text(encoding="utf-8")

    return write
