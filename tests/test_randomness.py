"""Randomness by address."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from cohort.randomness import generator, torch_seed

BASE = {"seed": 3, "purpose": "batches", "round": 5, "client": 7}
CHANGES = [{"seed": 4}, {"purpose": "batch"}, {"purpose": "Batches"}, {"round": 6}, {"client": 8}, {"round": 7, "client": 5}]


def draws(**address) -> list[float]:
    return generator(**address).random(4).tolist()


def test_same_address_same_draws():
    assert draws(**BASE) == draws(**BASE)
    assert torch_seed(**BASE) == torch_seed(**BASE)


@pytest.mark.parametrize("change", CHANGES)
def test_any_part_of_the_address_changes_the_draws(change: dict):
    assert not set(draws(**BASE)) & set(draws(**BASE | change))
    assert torch_seed(**BASE) != torch_seed(**BASE | change)


def test_round_and_client_are_0_where_they_do_not_matter():
    assert draws(seed=1, purpose="partition") == draws(seed=1, purpose="partition", round=0, client=0)
    assert torch_seed(1, "initial weights") == torch_seed(1, "initial weights", round=0, client=0)


def test_order_of_the_asking_does_not_matter():
    addresses = [{"seed": 0, "purpose": "batches", "round": round, "client": client} for round in range(3) for client in range(3)]
    forward = [draws(**address) for address in addresses]
    held = [generator(**address) for address in reversed(addresses)]
    np.random.seed(1)
    torch.manual_seed(1)
    assert [found.random(4).tolist() for found in reversed(held)] == forward


def test_two_generators_of_one_address_share_no_state():
    first, second = generator(**BASE), generator(**BASE)
    first.random(100)
    assert second.random(4).tolist() == draws(**BASE)


def test_addresses_do_not_collide():
    """7,500 addresses near one another; the chance that any two of 7,500 random 63-bit numbers agree is 3e-12."""
    purposes = ("partition", "selection", "batches")
    seeds = [torch_seed(s, p, round=r, client=c) for s in range(5) for p in purposes for r in range(25) for c in range(20)]
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
    values = np.array([generator(seed, "selection", round=round).random() for seed in range(30) for round in range(30)])
    assert abs(values.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 900)
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 4 / np.sqrt(900)


def test_the_address_is_spelled_as_it_always_was():
    """Another spelling would silently give every cell of every lab other draws under the same digest."""
    word = int.from_bytes(hashlib.sha256(b"partition").digest()[:4], "big")
    expected = np.random.Generator(np.random.PCG64(np.random.SeedSequence([9, word, 2, 4]))).random(3)
    assert generator(9, "partition", round=2, client=4).random(3).tolist() == expected.tolist()
