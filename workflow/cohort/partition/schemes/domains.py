"""Feature skew: the data set's groups are domains, and clients hold different ones (Stratify)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.partition.scheme import NO_GROUPS, Parts, Pool, Scheme, group_by_owner
from cohort.partition.schemes.classes import draw_holders
from cohort.partition.schemes.dirichlet import Dirichlet


@dataclass(frozen=True, kw_only=True)
class Domains(Scheme):
    """Stratify's #D = d: client i holds domain i mod G and d-1 others drawn at random. Each class
    of a domain is split evenly among the domain's holders."""

    name: ClassVar[str] = "domains"
    d: int = parameter(minimum=1, help="domains per client")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        super().check(classes, clients, samples)
        if groups is None:
            raise ValueError(NO_GROUPS)
        if self.d > groups:
            raise ValueError(f"a client cannot hold {self.d} domains where there are only {groups}")
        if clients < groups:
            raise ValueError(
                f"{clients} clients leave some of the {groups} domains unheld "
                f"(client i starts from domain i mod {groups})"
            )

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        groups = pool.known_groups()
        domains = int(groups.max()) + 1
        samples_of = group_by_owner(np.arange(len(groups)), groups, domains)
        parts: list[Parts] = [[] for _ in range(clients)]
        for domain, holding in enumerate(draw_holders(domains, clients, self.d, 1, rng)):
            samples = samples_of[domain]
            if len(samples) < len(holding):
                raise ValueError(
                    f"domain {domain} has {len(samples)} samples for {len(holding)} clients "
                    "that hold it"
                )
            pieces = split_evenly(samples, pool, len(holding), rng)
            for client, part in zip(holding, pieces, strict=True):
                parts[client].append(part)
        return [np.concatenate(part) for part in parts]


@dataclass(frozen=True, kw_only=True)
class IsolatedDomain(Scheme):
    """Stratify's Table V: one domain is isolated at the first client, which holds all of it and
    nothing else. Each class of the other domains is split evenly among the other clients."""

    name: ClassVar[str] = "onedomain"
    domain: int = parameter(minimum=0, help="the first client's domain, counted from 0")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        super().check(classes, clients, samples)
        if groups is None:
            raise ValueError(NO_GROUPS)
        if self.domain >= groups:
            raise ValueError(
                f"there is no domain {self.domain}: the {groups} domains are numbered "
                f"from 0 to {groups - 1}"
            )
        if clients < 2:
            raise ValueError("a domain at one client and the others elsewhere need two clients")

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        alone = pool.known_groups() == self.domain
        if not alone.any() or (~alone).sum() < clients - 1:
            raise ValueError(
                f"domain {self.domain} has {alone.sum()} samples, "
                f"the others {(~alone).sum()} for {clients - 1} clients"
            )
        return [
            np.flatnonzero(alone),
            *split_evenly(np.flatnonzero(~alone), pool, clients - 1, rng),
        ]


@dataclass(frozen=True, kw_only=True)
class DirichletDomains(Dirichlet):
    """`dir` with domains in place of classes: shares of each domain are drawn, whatever the
    labels."""

    name: ClassVar[str] = "dirdomains"

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        super().check(classes, clients, samples)
        if groups is None:
            raise ValueError(NO_GROUPS)

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        return super().deal(Pool(pool.known_groups()), clients, rng)


def split_evenly(samples: np.ndarray, pool: Pool, count: int, rng: np.random.Generator) -> Parts:
    """Split samples into `count` parts whose sizes differ by at most one, in total and within each
    class of each domain: every part takes each `count`-th sample of the samples sorted by both."""
    shuffled = rng.permutation(samples)
    ordered = shuffled[np.lexsort((pool.labels[shuffled], pool.known_groups()[shuffled]))]
    return [ordered[start::count] for start in range(count)]
