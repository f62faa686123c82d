"""A study on files that a mirror holds, as a user would run it; the mirror is how, not what."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
import yaml

from tests.data import publishers
from tests.workflow.conftest import Project


@pytest.fixture
def mirrored(fresh: Project) -> Project:
    """The tiny study on generated CIFAR-10 files, which lie packed in `mirror`; its URL answers nobody."""
    ((name, archive),) = publishers.packed("cifar10").items()
    (fresh.root / "mirror").mkdir()
    (fresh.root / "mirror" / name).write_bytes(archive)
    file = fresh.root / "config/datasets.yaml"
    facts = yaml.safe_load(file.read_text())
    facts["cifar10"] |= publishers.counts("cifar10")
    for name, content in publishers.contents("cifar10").items():
        results = {
            "sha256": hashlib.sha256(content).hexdigest(),
            "md5": hashlib.md5(archive).hexdigest(),
            "bytes": len(content),
        }
        facts["cifar10"]["files"][name] |= results | {
            "source": "http://127.0.0.1:9/cifar-10-python.tar.gz"
        }
    file.write_text(yaml.safe_dump(facts, sort_keys=False))
    study = fresh.study()
    study["settings"] |= {
        "dataset": "cifar10",
        "clients": 4,
        "cohort": 2,
        "reserve": 1,
        "rounds": 2,
    }
    study["experiments"]["two"]["axes"]["seed"] = [0]
    fresh.write(study)
    fresh.narrow()
    return fresh


@pytest.mark.slow
def test_a_mirror_is_how_and_not_what(mirrored: Project):
    mirrored.snakemake("tiny_fig2", "--config", "data_mirror=mirror")
    assert len(list((mirrored.root / "resources/raw/cifar10").iterdir())) == 6
    assert not (mirrored.root / "resources/raw/packed").exists()
    assert json.loads((mirrored.root / "results/plan/run.json").read_text())["download"] == {
        "mirror": "mirror",
        "paths": {},
    }
    log = (mirrored.root / "results/logs/download/cifar10/test_batch.log").read_text()
    assert "taken from the mirror: mirror/cifar-10-python.tar.gz" in log
    assert mirrored.planned("tiny_fig2") == {}
    (mirrored.root / "empty").mkdir()
    assert mirrored.planned("tiny_fig2", "--config", "data_mirror=empty") == {}
    mirrored.records()[0].unlink()
    shutil.rmtree(mirrored.root / "results/shards")
    assert not {"download", "prepare"} & set(mirrored.planned("--config", "data_mirror=empty"))
    shutil.rmtree(mirrored.root / "resources")
    output = mirrored.snakemake("--config", "data_mirror=elsewhere", fails=True)
    sentence = (
        "error: config/config.yaml or --config: data_mirror is 'elsewhere', which is not a folder"
    )
    assert sentence in output and "Traceback" not in output and "Job stats" not in output
    assert not list(mirrored.root.glob("resources/raw/cifar10/*"))
