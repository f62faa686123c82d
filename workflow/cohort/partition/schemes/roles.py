"""AML's shards of Shakespeare: a client is handed whole roles, which others may hold too."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.partition.scheme import NO_GROUPS, Parts, Pool, Scheme, by_owner


@dataclass(frozen=True, kw_only=True)
class Roles(Scheme):
    """Roles (a data set's groups) from the largest to the smallest, the lower number first where two are alike, are dealt to the clients in
    turn, over and over, until each has k; everyone who holds a role has all its samples.

    With more than k roles for each client the smallest roles are left out; with fewer, roles lie at several clients. Nothing is drawn: all
    seeds deal alike.
    """

    name: ClassVar[str] = "roles"
    exact: ClassVar[bool] = False
    k: int = parameter(minimum=1, help="roles per client")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        if groups is None:
            raise ValueError(NO_GROUPS)
        if self.k > groups:
            raise ValueError(f"a client cannot hold {self.k} roles where there are only {groups}")

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        groups = pool.known_groups()
        sizes = np.bincount(groups)
        roles = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
        if self.k > len(roles):
            raise ValueError(
                f"a client cannot hold {self.k} roles where only {len(roles)} have samples"
            )
        samples = by_owner(np.arange(len(groups)), groups, len(sizes))
        return [
            np.concatenate([samples[role] for role in roles[hand]])
            for hand in hands(len(roles), clients, self.k)
        ]


def hands(roles: int, clients: int, each: int) -> np.ndarray:
    """Which places of the list of roles each client (a row) is dealt.

    A client meets the same roles again after roles / gcd(roles, clients) turns. With `each` above that the authors' loop never ends, so it
    has no result to keep to: here the deal then goes on one role further. Up to there it is their loop, in which no client is dealt a role
    twice. It is mended and not refused because the number of roles that have samples depends on the seed when some are set aside.
    """
    turn = np.arange(each)
    extra = turn // (roles // gcd(roles, clients))
    hand: np.ndarray = (np.arange(clients)[:, None] + clients * turn + extra) % roles
    return hand
