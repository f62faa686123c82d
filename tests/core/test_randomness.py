"""Random generators are determined by their address alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from cohort.cell.planned import PlannedFile
from cohort.cell.settings import Settings
from cohort.core.hdf5 import new_hdf5
from cohort.core.randomness import generator, torch_seed
from cohort.data import sampling
from cohort.data.shards import write as write_shards
from cohort.data.store import FORMAT
from cohort.models.small import SmallMLP
from cohort.partition import deal
from cohort.training import task
from cohort.training.cell import Cell, cell_of
from cohort.training.evaluation import fingerprint
from cohort.training.procedures.federated import Federated, choosing, gathering, rounds
from cohort.training.trainers import base, local_work, serial

BASE = {"seed": 3, "purpose": "batches", "round": 5, "client": 7}
CHANGES = [
    {"seed": 4},
    {"purpose": "batch"},
    {"purpose": "Batches"},
    {"round": 6},
    {"client": 8},
    {"round": 7, "client": 5},
]


def draws(**address) -> list[float]:
    return generator(**address).random(4).tolist()


def test_same_address_same_draws():
    assert draws(**BASE) == draws(**BASE)
    assert torch_seed(**BASE) == torch_seed(**BASE)


@pytest.mark.parametrize("change", CHANGES)
def test_any_part_of_the_address_changes_the_draws(change: dict):
    assert not set(draws(**BASE)) & set(draws(**BASE | change))
    assert torch_seed(**BASE) != torch_seed(**BASE | change)


def test_round_and_client_default_to_0():
    assert draws(seed=1, purpose="partition") == draws(
        seed=1, purpose="partition", round=0, client=0
    )
    assert torch_seed(1, "initial weights") == torch_seed(1, "initial weights", round=0, client=0)


def test_order_of_generators_does_not_matter():
    addresses = [
        {"seed": 0, "purpose": "batches", "round": round, "client": client}
        for round in range(3)
        for client in range(3)
    ]
    forward = [draws(**address) for address in addresses]
    held = [generator(**address) for address in reversed(addresses)]
    np.random.seed(1)
    torch.manual_seed(1)
    assert [result.random(4).tolist() for result in reversed(held)] == forward


def test_two_generators_of_one_address_share_no_state():
    first, second = generator(**BASE), generator(**BASE)
    first.random(100)
    assert second.random(4).tolist() == draws(**BASE)


def test_addresses_do_not_collide():
    """7,500 addresses near one another; the chance that any two of 7,500 random 63-bit numbers
    agree is 3e-12."""
    purposes = ("partition", "selection", "batches")
    seeds = [
        torch_seed(s, p, round=r, client=c)
        for s in range(5)
        for p in purposes
        for r in range(25)
        for c in range(20)
    ]
    assert len(set(seeds)) == len(seeds) == 7500


def test_torch_seeds_have_63_bits_and_use_them():
    seeds = [torch_seed(seed, "initial weights") for seed in range(200)]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert max(seeds) > 2**62
    bits = np.array([[seed >> bit & 1 for bit in range(63)] for seed in seeds]).mean(axis=0)
    assert ((bits > 0.3) & (bits < 0.7)).all()
    for seed in seeds[:3]:
        assert torch.Generator().manual_seed(seed).initial_seed() == seed


def test_draws_are_uniform_over_neighboring_addresses():
    values = np.array(
        [
            generator(seed, "selection", round=round).random()
            for seed in range(30)
            for round in range(30)
        ]
    )
    assert abs(values.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 900)
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 4 / np.sqrt(900)


def test_seeds_derived_from_addresses_never_change():
    """A change would silently give every cell other draws under the same digest."""
    word = int.from_bytes(hashlib.sha256(b"partition").digest()[:4], "big")
    expected = np.random.Generator(np.random.PCG64(np.random.SeedSequence([9, word, 2, 4]))).random(
        3
    )
    assert generator(9, "partition", round=2, client=4).random(3).tolist() == expected.tolist()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[tuple]:
    """The addresses that the package draws from: (seed, purpose, round, client)."""
    result: set[tuple] = set()

    def watched(original: Callable) -> Callable:
        def call(seed: int, purpose: str, *, round: int = 0, client: int = 0):
            result.add((seed, purpose, round, client))
            return original(seed, purpose, round=round, client=client)

        return call

    for module in (
        deal,
        sampling,
        rounds,
        choosing,
        base,
        local_work,
        gathering,
    ):
        monkeypatch.setattr(module, "generator", watched(generator))
    for module in (serial, task):
        monkeypatch.setattr(module, "torch_seed", watched(torch_seed))
    return result


def planned_cell(*, validation_samples: int = 0, **changes) -> Cell:
    """A plan for 60 random images in a folder of their own, with its data and its shards made. The
    images may come with validation samples, all of whose values are 7."""
    rng = np.random.default_rng(0)
    with new_hdf5("data.h5") as file:
        file.attrs.update(
            {"classes": 3, "scale": 255, "mean": [0.0], "std": [1.0], "format": FORMAT}
        )
        for split, count in (("train", 40), ("test", 20)):
            file[f"{split}/values"] = rng.integers(0, 256, (count, 1, 8, 8), dtype=np.uint8)
            file[f"{split}/labels"] = (np.arange(count) % 3).astype(np.uint16)
        if validation_samples:
            values = np.full((validation_samples, 1, 8, 8), 7, dtype=np.uint8)
            file["validation/values"] = values
            file["validation/labels"] = (np.arange(validation_samples) % 3).astype(np.uint16)
    names = {
        "dataset": "noise",
        "model": "small-mlp",
        "partition": "iid",
        "strategy": "fedavg",
        "J": "J2",
    }
    numbers = {
        "seed": 4,
        "clients": 5,
        "cohort": 2,
        "rounds": 2,
        "batch": 4,
        "lr": 0.1,
        "reserve": 6,
        "samples": 0.5,
    }
    parts = {
        "selector": {"name": "random"},
        "objective": {"name": "cross-entropy"},
        "server": {"name": "average"},
    }
    settings = asdict(Settings(**(names | numbers | changes))) | parts
    inputs = {"data": "data.h5", "shards": "shards.h5"}
    cell = cell_of(PlannedFile("record.h5", "k0123456789ab", settings, {}, inputs))
    write_shards("shards.h5", deal.deal_data(settings, "data.h5"))
    return cell


def test_validation_samples_that_come_with_the_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The same share of them is used as of the others, unless training samples are set aside."""
    monkeypatch.chdir(tmp_path)
    for changes, count, samples in (({}, 6, "validation"), ({"validation": 10}, 5, "train")):
        cell = planned_cell(validation_samples=12, **changes)
        loaded = task.load_task(cell, torch.device("cpu"))
        assert len(loaded.validation) == count
        values = loaded.validation_samples.values
        assert len(values) == {"validation": 12, "train": 40}[samples]
        assert bool((values == 7).all()) == (samples == "validation")


def test_addresses_in_use(asked: set[tuple], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A change of any of these addresses would change results under the same digest."""
    monkeypatch.chdir(tmp_path)
    loaded = task.load_task(planned_cell(), torch.device("cpu"))
    assert asked == {
        (4, "partition", 0, 0),
        (4, "validation", 0, 0),
        (4, "initial weights", 0, 0),
    } | {(0, word, 0, 0) for word in ("train share", "test share", "reserve")}
    asked.clear()
    states = list(Federated().rounds(loaded, Federated().begin(loaded)))
    pairs = [
        (round, int(client))
        for round, cohort in enumerate(states[-1].history.cohorts, start=1)
        for client in cohort
    ]
    assert len(set(pairs)) == 4
    local = {(4, word, round, client) for word in ("batches", "dropout") for round, client in pairs}
    by_round = {(4, "devices", 0, 0), (4, "selection", 0, 0), (4, "stragglers", 0, 0)}
    by_round |= {
        (4, word, round, 0) for word in ("selection", "answers", "stragglers") for round in (1, 2)
    }
    assert asked == by_round | local


def test_initial_model_depends_on_the_seed_and_not_on_the_strategy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(torch_seed(4, "initial weights"))
    by_hand = fingerprint(SmallMLP().build((1, 8, 8), 3).state_dict())
    results = []
    for changes in (
        {},
        {"strategy": "loss", "lr": 1.0, "partition": "classes-2", "samples": 1.0},
        {"seed": 5},
    ):
        torch.rand(2)
        results.append(
            fingerprint(
                task.load_task(planned_cell(**changes), torch.device("cpu")).initial_weights()
            )
        )
    assert results[0] == results[1] == by_hand
    assert results[2] != by_hand
