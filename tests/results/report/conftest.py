"""A study's page from files written by hand: two partitions, two strategies, two seeds, of which one run is missing."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cohort.core.sealed_json import to_sealed_json
from cohort.results.claims.judged import Evidence, JudgedClaim
from cohort.results.comparison import Comparison, Result
from cohort.results.report.page import write_page
from cohort.results.series import write_metrics

Spec = dict[str, Any]
STYLE = {
    "orders": {"strategy": ["fedavg", "fedentopt"], "partition": ["dir-0.1", "iid"]},
    "titles": {"strategy": {"fedavg": "FedAvg", "fedentopt": "FedEntOpt"}},
}
PNG = b"\x89PNG, not really" + (1400).to_bytes(4)
"""A picture's head, which ends with its width in pixels."""


def result(values: dict[str, float], diverged: int = 0, **fields: Any) -> Result:
    """Make a comparison's result with these accuracies of two planned runs."""
    labels = {name: fields.pop(name) for name in ("partition", "strategy") if name in fields}
    frame = {"metric": "test_accuracy", "at": "last", "planned": 2, "finished": 2}
    return Result(labels=labels, values=values, diverged=diverged, **frame | fields)


TABLE = [
    result({"0": 0.5, "1": 0.54}, partition="dir-0.1", strategy="fedavg"),
    result({"0": 0.6}, 1, partition="dir-0.1", strategy="fedentopt", best=True),
    result({"0": 0.69, "1": 0.71}, partition="iid", strategy="fedavg", best=True),
    result({}, partition="iid", strategy="fedentopt", finished=0),
]
CURVES = [
    result({"0": 0.5, "1": 0.54}, strategy="fedavg"),
    result({"0": 0.6}, strategy="fedentopt"),
]


def comparison(results: list[Result], **fields: Any) -> Comparison:
    """Results as a table or figure shows them."""
    frame = {"labels": list(results[0].labels), "scale": "full"}
    return Comparison(results=results, **frame | {"has_paper": False} | fields)


def write(file: Path, content: Comparison) -> None:
    """Write the JSON file of a table or figure."""
    file.write_text(to_sealed_json(dataclasses.asdict(content)))


def write_claims(file: Path, *claims: JudgedClaim) -> None:
    """Write the JSON file of claims."""
    file.write_text(to_sealed_json({"claims": [dataclasses.asdict(claim) for claim in claims]}))


POINT: dict[str, Any] = {"experiment": "main", "labels": {"partition": "dir-0.1"}}
FIRST, LAST = (
    {**POINT, "name": name, "labels": {**POINT["labels"], "strategy": name.lower()}}
    for name in ("FedEntOpt", "FedAvg")
)
NUMBERS = {"mean": "", "sd": "", "low": "", "high": "", "n": 0, "planned": 0}
AHEAD = {"seeds": "above 0 in 1 of 2 seeds", "mean": "+8.00", "low": "-1.00", "high": "+17.00"}
SPREAD = {"mean": "52.00", "sd": "2.83", "low": "26.60", "high": "77.40", "n": 2, "planned": 2}
OURS = [NUMBERS | {"mean": "60.00", "n": 1, "planned": 2}, SPREAD]
PRINTED = [NUMBERS | {"mean": mean} for mean in ("61.00", "47.00")]
SIDES = {
    "paper": Evidence(PRINTED, verdict="held"),
    "ours": Evidence(OURS, verdict="undecided", difference=AHEAD),
}
COMPARED = {"name": "dir-0.1", "points": [FIRST, LAST], "sides": SIDES}
CLAIM = JudgedClaim(
    **{"claim": "better", "says": "FedEntOpt is better.", "where": "Section 1", "kind": "gain"},
    **{"metric": "test_accuracy", "at": "last", "measured": "undecided", "measured_evidence": ""},
    **{"n": 3, "planned": 4, "diverged": 0},
    **{"paper": "held", "paper_evidence": "", "doubtful": "", "gap": "3 seeds; a verdict needs 5"},
    **{"paper_gap": "", "comparisons": [COMPARED]},
)
ACCURACY = {"fedavg": (0.5, 0.54), "fedentopt": (0.6, None)}
SETTINGS = {"dataset": "digits", "model": "mlp", "J": "J4", "rounds": 10} | {
    "selector": {"name": "random"}
}


def cell(partition: str, strategy: str, seed: int, *, there: bool = True) -> dict[str, Any]:
    """A cell as `collect` describes it, with ten seconds and two megabytes if its record is there."""
    own = {"partition": partition, "J": "J4", "strategy": strategy, "seed": seed}
    labels = {"dataset": "digits", "model": "mlp"} | own
    digest = f"k{partition[0]}{strategy[3]}{seed}".ljust(13, "0")
    planned = {"digest": digest, "path": f"results/cells/{digest}.h5", "labels": labels}
    if not there:
        return planned | {"status": "missing"}
    run_info = {
        "settings": SETTINGS | own,
        **{"started": f"2026-0{seed + 1}-15T10:00:00+00:00", "sessions": 1},
        **{"commit": f"abc{seed}", "trainer": "native"},
        **{"devices": ["Xeon <1>"], "peak_memory_mb": 300.0, "versions": {"torch": "2.9"}},
        "my": {"my.selection.mine": [f"{seed}" * 64]},
        **{"seconds": 10.0, "bytes_up": 2e6, "bytes_down": 2e6, "client_steps": 40},
    }
    return planned | {"status": "done"} | run_info


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    """A study with a figure, a figure without runs, a table and a claim, each with its files."""
    names = itertools.product(("dir-0.1", "iid"), ("fedavg", "fedentopt"), (0, 1))
    lacking = ("dir-0.1", "fedentopt", 1)
    cells = [cell(*name, there=name[0] == "dir-0.1" and name != lacking) for name in names]
    experiments = {"main": cells[:4], "later": cells[4:]}
    for name, own in experiments.items():
        experiment = {"study": "demo", "experiment": name, "cells": own}
        write_metrics(tmp_path / f"{name}.parquet", metrics(own), experiment)
    drawn = tmp_path / "drawn"
    drawn.mkdir()
    for picture in ("fig1.png", "fig1-narrow.png"):
        (drawn / picture).write_bytes(PNG)
    write(drawn / "tab1.json", comparison(TABLE))
    write(drawn / "fig1.json", comparison(CURVES))
    write_claims(drawn / "claims.json", CLAIM)
    figure = {"kind": "curves", "metric": "test_accuracy"}
    table = {"metric": "test_accuracy", "rows": ["partition"]}
    runs = {name: str(tmp_path / f"{name}.json") for name in experiments}
    pictures, texts = ("png", "pdf", "json"), ("csv", "md", "tex", "json")
    empty = {"quote": "", "against": "", "reading": ""}
    return {
        **{"name": "demo", "title": "Demo", "question": "Which is better?", "scale": "full"},
        **{"findings": [], "key_figure": "", "description": "What it is.", "source": {}},
        **{"notes": [], "my": {}},
        "titles": {"strategy": {"fedavg": "FedAvg", "fedentopt": "FedEntOpt"}},
        "experiments": {
            name: {"runs": runs[name], "seconds": {cell["digest"]: 3600.0 for cell in own}}
            for name, own in experiments.items()
        },
        "figures": [
            figure | item(tmp_path, "fig1", "main", pictures),
            figure | item(tmp_path, "fig2", "later", pictures),
        ],
        "tables": [table | item(tmp_path, "tab1", "main", texts)],
        "claims": [str(drawn / f"claims.{ending}") for ending in texts],
        "quotes": {"better": empty, "wide": empty},
        **{"claims_command": "snakemake demo_claims", "command": "snakemake demo"},
    }


def item(folder: Path, name: str, experiment: str, endings: tuple[str, ...]) -> Spec:
    return {
        "name": name,
        "title": f"Title of {name}",
        "caption": f"Caption of {name}.",
        "experiment": experiment,
        "metrics": str(folder / f"{experiment}.parquet"),
        "style": STYLE,
        "command": f"snakemake demo_{name}",
        "files": [str(folder / "drawn" / f"{name}.{ending}") for ending in endings],
    }


def metrics(cells: list[dict[str, Any]]) -> pd.DataFrame:
    rows = []
    for cell in cells:
        labels, status = cell["labels"], cell["status"]
        value = ACCURACY[labels["strategy"]][labels["seed"]] if status == "done" else None
        metric = "test_accuracy" if value else None
        row = {"digest": cell["digest"], **labels, "status": status, "metric": metric}
        rows.append(row | {"round": 10, "client": None, "value": value})
    return pd.DataFrame(rows)


@pytest.fixture
def page(tmp_path: Path) -> Callable[[Spec], str]:
    """Writes the page of a spec and returns its HTML."""

    def write(spec: Spec) -> str:
        write_page(spec, [tmp_path / "report/demo.html", tmp_path / "report/demo.json"])
        return (tmp_path / "report/demo.html").read_text(encoding="utf-8")

    return write
