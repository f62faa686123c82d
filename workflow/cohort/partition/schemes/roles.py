"""AML's shards of Shakespeare: clients hold whole roles, which others may hold too."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.partition.scheme import NO_GROUPS, Parts, Pool, Scheme, group_by_owner


@dataclass(frozen=True, kw_only=True)
class Roles(Scheme):
    """Roles (the data set's groups) are dealt to the clients in turn, largest first and over and
    over, until each client has k. Every holder of a role has all its samples.

    If there are more than k roles per client, the smallest are left out; if there are fewer, some
    roles have several holders. Nothing is random: all seeds deal the same shards.
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
        samples = group_by_owner(np.arange(len(groups)), groups, len(sizes))
        held = roles[dealt_roles(len(roles), clients, self.k)]
        return [np.concatenate(list(map(samples.__getitem__, row))) for row in held]


def dealt_roles(roles: int, clients: int, per_client: int) -> np.ndarray:
    """The positions of each client's roles in the list of roles (client, role).

    A client meets the same roles again after roles / gcd(roles, clients) turns. The authors' loop,
    which this follows up to there, never ends for a larger `per_client`; here it continues one role
    further on, so that no client gets a role twice. That is not an error, because the number of
    roles that have samples depends on the seed when some samples are set aside.
    """
    turn = np.arange(per_client)
    extra = turn // (roles // gcd(roles, clients))
    hand: np.ndarray = (np.arange(clients)[:, None] + clients * turn + extra) % roles
    return hand
