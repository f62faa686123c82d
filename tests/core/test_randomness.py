"""Random generators are determined by their address alone."""

import hashlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from cohort.core import randomness
from cohort.core.hdf5 import new_hdf5
from cohort.core.randomness import generator, torch_seed
from cohort.data import samples, sampling
from cohort.data.shards import write as write_shards
from cohort.data.store import FORMAT
from cohort.partition import deal
from cohort.settings import PlannedFile, Settings
from cohort.training import task, updates
from cohort.training.cell import Cell, cell_of
from cohort.training.procedures import gathering
from cohort.training.procedures.procedure import Federated
from cohort.training.trainers import trainer

BASE = {"seed": 3, "purpose": "batches", "round": 5, "client": 7}
CHANGES = [{"seed": 4}, {"purpose": "batch"}, {"purpose": "Batches"}, {"round": 6}, {"client": 8}]
CHANGES += [{"round": 7, "client": 5}]


def draws(**address) -> list[float]:
    return generator(**address).random(4).tolist()


def test_same_address_same_draws():
    assert draws(**BASE) == draws(**BASE)
    assert torch_seed(**BASE) == torch_seed(**BASE)


@pytest.mark.parametrize("change", CHANGES)
def test_any_part_of_the_address_changes_the_draws(change: dict):
    assert not set(draws(**BASE)) & set(draws(**BASE | change))
    assert torch_seed(**BASE) != torch_seed(**BASE | change)


def test_seeds_derived_from_addresses_never_change():
    """A change would silently give every cell other draws under the same digest."""
    purpose = int.from_bytes(hashlib.sha256(b"partition").digest()[:4], "big")
    bits = np.random.PCG64(np.random.SeedSequence([9, purpose, 2, 4]))
    expected = np.random.Generator(bits).random(3).tolist()
    assert generator(9, "partition", round=2, client=4).random(3).tolist() == expected


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> set[tuple]:
    """The addresses that the package draws from: (seed, purpose, round, client)."""
    result: set[tuple] = set()

    def watched(original: Callable) -> Callable:
        def call(seed: int, purpose: str, *, round: int = 0, client: int = 0):
            result.add((seed, purpose, round, client))
            return original(seed, purpose, round=round, client=client)

        return call

    drawing = [deal, sampling, randomness, trainer, updates, gathering]
    for module in drawing:
        monkeypatch.setattr(module, "generator", watched(generator))
    for module in (updates, task):
        monkeypatch.setattr(module, "torch_seed", watched(torch_seed))
    return result


def planned_cell(*, validation_samples: int = 0, **changes) -> Cell:
    """A plan for 60 random images in a folder of their own, with its data and its shards made. The
    images may come with validation samples, all of whose values are 7."""
    samples.load.cache_clear()  # of another test's file of this name
    rng = np.random.default_rng(0)
    with new_hdf5("data.h5") as file:
        file.attrs.update({"classes": 3, "scale": 255, "mean": [0.0], "std": [1.0]})
        file.attrs["format"] = FORMAT
        for split, count in (("train", 40), ("test", 20)):
            file[f"{split}/values"] = rng.integers(0, 256, (count, 1, 8, 8), dtype=np.uint8)
            file[f"{split}/labels"] = (np.arange(count) % 3).astype(np.uint16)
        if validation_samples:
            values = np.full((validation_samples, 1, 8, 8), 7, dtype=np.uint8)
            file["validation/values"] = values
            file["validation/labels"] = (np.arange(validation_samples) % 3).astype(np.uint16)
    names = {"dataset": "noise", "model": "small-mlp", "partition": "iid", "J": "J2"}
    names["strategy"] = "fedavg"
    numbers = {"seed": 4, "clients": 5, "cohort": 2, "rounds": 2, "batch": 4, "lr": 0.1}
    numbers |= {"reserve": 6, "samples": 0.5}
    parts = {"selector": {"name": "random"}, "objective": {"name": "cross-entropy"}}
    parts["server"] = {"name": "average"}
    settings = asdict(Settings(**(names | numbers | changes))) | parts
    inputs = {"data": "data.h5", "shards": "shards.h5"}
    cell = cell_of(PlannedFile("record.h5", "k0123456789ab", settings, {}, inputs))
    write_shards("shards.h5", deal.deal_data(settings, "data.h5"))
    return cell


def test_validation_samples_that_come_with_the_data_set(empty_folder: Path):
    """The same share of them is used as of the others, unless training samples are set aside."""
    for changes, count, split in (({}, 6, "validation"), ({"validation": 10}, 5, "train")):
        cell = planned_cell(validation_samples=12, **changes)
        loaded = task.load_task(cell, torch.device("cpu"))
        assert len(loaded.validation) == count
        values = loaded.validation_samples.values
        assert len(values) == {"validation": 12, "train": 40}[split]
        assert bool((values == 7).all()) == (split == "validation")


def test_addresses_in_use(addresses: set[tuple], empty_folder: Path):
    """A change of any of these addresses would change results under the same digest."""
    loaded = task.load_task(planned_cell(), torch.device("cpu"))
    assert addresses == {
        (4, "partition", 0, 0),
        (4, "validation", 0, 0),
        (4, "initial weights", 0, 0),
    } | {(0, purpose, 0, 0) for purpose in ("train share", "test share", "reserve")}
    addresses.clear()
    states = list(Federated().rounds_of(loaded).run(Federated().begin(loaded)))
    pairs = [
        (round, int(client))
        for round, cohort in enumerate(states[-1].history.cohorts, start=1)
        for client in cohort
    ]
    assert len(set(pairs)) == 4
    local = {(4, purpose, *pair) for purpose in ("batches", "dropout") for pair in pairs}
    by_round = {(4, "devices", 0, 0), (4, "selection", 0, 0), (4, "stragglers", 0, 0)}
    purposes = ("selection", "answers")
    by_round |= {(4, purpose, round, 0) for purpose in purposes for round in (1, 2)}
    assert addresses == by_round | local
