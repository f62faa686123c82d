"""Adding is local: a file of each kind of component in the user's folder, and nothing else, is
planned, trained, drawn and judged."""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

import cohort
from cohort.core.components import Catalog
from cohort.records.record import Record, read
from tests.workflow.conftest import Project

FOLDER = Path(__file__).parent / "one_of_each"
LABELS = np.arange(100) % 4
DERIVED = {"cohort.results.figures.kinds": "curves", "cohort.results.claims.kinds": "range"}
"""Kinds that derive from built-in ones, by the package of their catalog."""


def catalogs() -> dict[str, Catalog]:
    """Every catalog of the package, by the package of its components."""
    names = (info.name for info in pkgutil.walk_packages(cohort.__path__, "cohort."))
    values = [
        value
        for name in names
        if not name.endswith("__main__")
        for value in vars(importlib.import_module(name)).values()
    ]
    return {value.package: value for value in values if isinstance(value, Catalog)}


def add_everything(root: Path) -> None:
    """Fill the user's folder: components, two data sets that one parser reads, a strategy, a study."""
    shutil.copytree(FOLDER, root / "my")
    for package, name in DERIVED.items():
        kind = catalogs()[package][name]
        file = root / "my" / Path(*package.split(".")[1:]) / "derived.py"
        file.parent.mkdir(parents=True)
        file.write_text(
            f"from {kind.__module__} import {kind.__name__}\n\n\n"
            f'class Mine({kind.__name__}):\n    name = "my-{name}"\n'
        )
    content = "".join(f"{label}\n" for label in LABELS).encode()
    (root / "stripes.txt").write_bytes(content)
    file = {
        "source": f"file:{root}/stripes.txt",
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
    }
    info = {"shape": [1, 4, 4], "classes": 4, "train": 80, "test": 20, "scale": 255}
    texts = dict.fromkeys(("title", "citation", "licence"), "ours")
    stripes = {**texts, **info, "files": {"stripes.txt": file}}
    datasets = {"stripes": stripes, "more-stripes": {**stripes, "parser": "stripes"}}
    (root / "my/datasets.yaml").write_text(yaml.safe_dump(datasets))


def record_of(project: Project, strategy: str) -> Record:
    (path,) = (path for path in project.records() if path.parent.name == strategy)
    return read(path)


def test_every_kind_of_component_has_one_here():
    files = {str(file.parent.relative_to(FOLDER)) for file in FOLDER.rglob("*.py")}
    added = {f"cohort.{folder.replace('/', '.')}".removesuffix(".noted") for folder in files}
    assert added | set(DERIVED) == set(catalogs())


@pytest.mark.slow
def test_a_file_of_each_kind_is_all_that_it_takes(fresh: Project):
    add_everything(fresh.root)
    fresh.snakemake("--cores", "1", "--config", "studies=each", "--", "each")
    record, central = record_of(fresh, "mine"), record_of(fresh, "fedavg")
    metrics = record.history.metrics
    assert [value for _, value in metrics["parity"]] == [1, 0, 1, 0]
    assert [round for round, _ in metrics["weight_norm"]] == [2, 4]
    assert [len(answering) for answering in record.history.responders] == [1] * 4
    assert [value for _, value in metrics["available"]] == [4, 4, 5, 5]
    # 80 samples on 5 clients: who is there evaluates 16 of them, and sends a number of 4 bytes
    assert [value for _, value in record.history.cost["selection_samples"]] == [64, 64, 80, 80]
    # these at a third of the time of a step on a sample, then two steps of 4 samples: 10 in a second
    seconds = [value for _, value in record.history.cost["simulated_seconds"]]
    np.testing.assert_allclose(seconds, [(16 / 3 + 8) / 10] * 4)
    assert record.history.traffic["largest_output"].tolist() == [(4 + 4 + 5 + 5) * 4, 0, 0]
    assert record.clients["label_counts"].tolist() == [
        np.bincount(LABELS[:80][client::5], minlength=4).tolist() for client in range(5)
    ]
    rates = [value for _, value in central.history.metrics["learning_rate"]]
    np.testing.assert_allclose(rates, [0.1, 0.05, 0.025, 0.0125])
    results = fresh.root / "results/full"
    assert (results / "figures/each/norm.png").exists()
    assert "Weights grow." in (results / "report/each.html").read_text()
