"""How far the estimates of `cohort status --cost` are from the time that cells take."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.project import copy_project, environment
from benchmarks.tables import Goal, Section, number, table
from cohort.pipeline.cell_states import status_of
from cohort.plan import load
from cohort.plan.cost import round_seconds

STUDY = "estimates"
IMAGES = {"pathmnist-32": (28, 8000, 1000), "pathmnist-224": (224, 160, 40)}
"""Data sets that are replaced by noise: pixels at each side of the file's images, and how many are
for training and for testing. The other half of the latter is for validation."""
USUAL: dict[str, Any] = {
    "dataset": "pathmnist-32",
    "clients": 20,
    "cohort": 5,
    "rounds": 6,
    "batch": 64,
    "lr": 0.01,
    "evaluate_every": 3,
}
KINDS: dict[str, dict[str, Any]] = {
    "LeNet-5": {"model": "lenet5", "J": "J5e", "momentum": 0.9},
    "LeNet-5, augmented": {"model": "lenet5", "J": "J5e", "augmentation": "jitter-flip-gray"},
    "LeNet-5, one sample a step": {"model": "lenet5", "J": "J1e", "batch": 1},
    "LeNet of AML": {"model": "aml-lenet", "J": "J4", "rounds": 4},
    "small CNN": {"model": "small-cnn", "J": "J2e", "batch": 10, "rounds": 20},
    "small MLP on digits": {"model": "small-mlp", "J": "J4", "dataset": "digits", "rounds": 300},
    "VGG-11": {"model": "vgg11", "J": "J2", "rounds": 2, "evaluate_every": 2},
    "VGG-11 with batch normalization": {"model": "vgg11-bn", "J": "J1", "rounds": 2},
    "LeNet-5, centralized, Adam": {
        **{"model": "lenet5", "J": "J1e", "optimizer": "adam", "procedure": "centralized"},
        **{"clients": 1, "cohort": 1, "rounds": 3},
    },
    "LeNet-5, FedConcat": {"model": "lenet5", "J": "J2e", "procedure": "concat-3", "rounds": 10},
    "LeNet-5, passed on for one sample a step": {
        **{"model": "lenet5", "J": "J1e", "batch": 1, "procedure": "stratified-single"},
        **{"cohort": 20, "rounds": 2, "evaluate_every": 1},
    },
    "EfficientNet-B0": {"model": "efficientnet-b0", "J": "J1", "batch": 8, "rounds": 2},
    "EfficientNet-B0, 224 pixels": {
        **{"model": "efficientnet-b0", "dataset": "pathmnist-224", "J": "J1", "batch": 8},
        **{"rounds": 1, "evaluate_every": 1, "cohort": 2},
    },
}

FEW = {"small MLP on digits": KINDS["small MLP on digits"] | {"rounds": 3}}


def measure(kinds: dict[str, dict[str, Any]], folder: Path) -> Section:
    """Train two cells of each kind, of which the first compiles the native code, and compare the
    time of the second one's rounds with its estimate."""
    project = copy_project(folder / "project")
    _put_noise_for_images(project, folder / "mirror")
    _add_study(project, kinds)
    rows, ratios = [], []
    with contextlib.chdir(project):
        plan = load({"studies": STUDY})
        for title, (first, second) in zip(kinds, plan.rows([STUDY]).values(), strict=True):
            cell = plan.cells[second.digest]
            for row in (first, second):
                _train(row.digest, project, folder / "mirror")
            taken = status_of(cell, {}).seconds
            estimate = round_seconds(cell, plan.dataset_info(cell))
            ratios.append(taken / estimate)
            rows.append([title, *map(number, (taken, estimate, ratios[-1]))])
    return Section(
        "Estimates of time",
        [
            "One cell of each kind on one core, on noise instead of images: the seconds of its "
            "rounds, as its record has them and as `cohort status --cost` estimates them. The native code "
            "is compiled before.",
            table(["cell", "measured", "estimated", "measured / estimated"], rows),
        ],
        [
            Goal("smallest measured / estimated", 0.7, min(ratios)),
            Goal("largest measured / estimated", 1.4, max(ratios), at_least=False),
        ],
    )


def _put_noise_for_images(project: Path, mirror: Path) -> None:
    """Write noise into the mirror in place of the images of some data sets, in files like their
    publishers', and describe these files in the project's config/datasets.yaml."""
    entries = project / "config/datasets.yaml"
    described, rng = yaml.safe_load(entries.read_text()), np.random.default_rng(0)
    for name, (side, train, test) in IMAGES.items():
        counts = {"train": train, "test": test, "val": test}
        entry = described[name]
        (file,) = entry["files"]
        path = mirror / name / file
        path.parent.mkdir(parents=True)
        images = {
            f"{part}_images": rng.integers(0, 256, (count, side, side, 3), np.uint8)
            for part, count in counts.items()
        }
        labels = {
            f"{part}_labels": rng.integers(0, entry["classes"], (count, 1))
            for part, count in counts.items()
        }
        np.savez(path, allow_pickle=False, **images, **labels)
        entry |= {"train": train, "test": test, "validation": test, "generated": True}
        entry["files"][file]["md5"] = hashlib.md5(path.read_bytes()).hexdigest()
    entries.write_text(yaml.safe_dump(described, sort_keys=False))


def _add_study(project: Path, kinds: dict[str, dict[str, Any]]) -> None:
    axes = {"partition": ["iid"], "strategy": ["fedavg"], "seed": [0, 1]}
    study = {
        "title": "Estimates",
        "experiments": {
            f"kind{number}": {
                "settings": {name: value for name, value in settings.items() if name != "J"},
                "axes": axes | {"J": [settings["J"]]},
            }
            for number, settings in enumerate(USUAL | kind for kind in kinds.values())
        },
    }
    (project / f"config/studies/{STUDY}.yaml").write_text(yaml.safe_dump(study, sort_keys=False))


def _train(digest: str, project: Path, mirror: Path) -> None:
    config = [f"studies={STUDY}", f"data_mirror={mirror}", "device=cpu"]
    subprocess.run(
        [sys.executable, "-m", "cohort", "run", digest, "--config", *config],
        env=environment(project, os.environ),
        cwd=project,
        check=True,
        stdout=subprocess.DEVNULL,
    )
