"""roles-k against the authors' loop on made-up roles, and where that loop never ends."""

from __future__ import annotations

from math import gcd

import numpy as np
import pytest

from cohort.partition import Pool
from cohort.partition.schemes import Roles, dealt_roles

SIZES = [5, 40, 7, 7, 300, 1, 22, 7, 90, 13, 2, 61]
BY_SIZE = [
    4,
    8,
    11,
    1,
    6,
    9,
    2,
    3,
    7,
    0,
    10,
    5,
]  # 300 90 61 40 22 13 7 7 7 5 2 1, the lower number first where two are alike
POOL = Pool(
    np.zeros(sum(SIZES), dtype=int),
    np.random.default_rng(0).permutation(np.repeat(np.arange(12), SIZES)),
)


def literal(roles: list[int], clients: int, k: int) -> list[set[int]]:
    """As the authors deal: in turn from the list, around and around; a role dealt twice to a client
    does not count."""
    held: list[set[int]] = [set() for _ in range(clients)]
    position = 0
    while min(map(len, held)) < k:
        for client in range(clients):
            if len(held[client]) < k:
                held[client].add(roles[position % len(roles)])
                position += 1
    return held


def roles_of(parts: list[np.ndarray]) -> list[set[int]]:
    assert POOL.groups is not None
    return [set(POOL.groups[part].tolist()) for part in parts]


ENDS = [
    (clients, k)
    for clients in (1, 2, 3, 5, 7, 8, 12, 25)
    for k in range(1, 13)
    if k <= 12 // gcd(12, clients)
]
ENDLESS = [
    (clients, k)
    for clients in (2, 3, 4, 6, 8, 10, 12, 24)
    for k in range(1, 13)
    if k > 12 // gcd(12, clients)
]


@pytest.mark.parametrize(("clients", "k"), ENDS)
def test_roles_are_dealt_as_in_the_authors_loop(clients: int, k: int):
    assert roles_of(Roles(k=k).deal(POOL, clients, np.random.default_rng(0))) == literal(
        BY_SIZE, clients, k
    )


@pytest.mark.parametrize(("clients", "k"), ENDLESS)
def test_every_client_has_k_roles_where_that_loop_never_ends(clients: int, k: int):
    held = roles_of(Roles(k=k).deal(POOL, clients, np.random.default_rng(0)))
    assert [len(roles) for roles in held] == [k] * clients
    turns = 12 // gcd(12, clients)  # as far as the loop goes round without a repetition
    assert all(
        first <= roles for first, roles in zip(literal(BY_SIZE, clients, turns), held, strict=True)
    )


@pytest.mark.parametrize(("clients", "k"), [*ENDS[::3], *ENDLESS[::3]])
def test_who_holds_a_role_holds_all_of_it_and_the_smallest_are_left_out(clients: int, k: int):
    """The samples at a client are those of its roles, each once; those at nobody are of the roles
    that were not dealt."""
    assert POOL.groups is not None
    parts = Roles(k=k).deal(POOL, clients, np.random.default_rng(0))
    for part, roles in zip(parts, roles_of(parts), strict=True):
        np.testing.assert_array_equal(
            np.sort(part), np.flatnonzero(np.isin(POOL.groups, list(roles)))
        )
    dealt = BY_SIZE[: k * clients]
    np.testing.assert_array_equal(
        np.unique(np.concatenate(parts)), np.flatnonzero(np.isin(POOL.groups, dealt))
    )


def test_two_clients_by_hand():
    """Two roles each of 300, 90, 61, 40, ...: client 0 has the first and the third, client 1 the
    second and the fourth."""
    assert [len(part) for part in Roles(k=2).deal(POOL, 2, np.random.default_rng(0))] == [361, 130]


def test_roles_without_samples_are_not_dealt():
    """Role 1 has none: two clients share roles 0 and 2, and three roles each there are not."""
    pool = Pool(np.zeros(5, dtype=int), np.array([0, 2, 2, 0, 2]))
    assert [
        sorted(part.tolist()) for part in Roles(k=1).deal(pool, 2, np.random.default_rng(0))
    ] == [[1, 2, 4], [0, 3]]
    with pytest.raises(ValueError, match="a client cannot hold 3 roles where only 2 have samples"):
        Roles(k=3).deal(pool, 2, np.random.default_rng(0))


@pytest.mark.parametrize("roles", [1100, 1129, 100, 50, 700])
@pytest.mark.parametrize("k", [1, 5, 10, 50])
def test_hundred_clients_of_about_as_many_roles_as_shakespeare_has(roles: int, k: int):
    """Each client has k roles, and no role is dealt to two more clients than another where the deal
    goes round whole."""
    dealt = dealt_roles(roles, 100, k)
    assert all(len(set(hand)) == k for hand in dealt.tolist())
    times = np.bincount(dealt.ravel(), minlength=roles)
    assert times.sum() == 100 * k and np.ptp(times) <= 1
