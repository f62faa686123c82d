"""Partition schemes, which deal samples to clients."""

import dataclasses
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import ClassVar, Self

import numpy as np

from cohort.core.components import Catalog, NameEncoded, parameter, parse
from cohort.core.errors import UserError
from cohort.data.sampling import scaled_count

Rng = np.random.Generator
NO_GROUPS = "it deals samples by their groups (domains, roles), and this data set has none"
Parts = list[np.ndarray]
"""For each client, indices of samples."""


@dataclass(frozen=True)
class Pool:
    """The samples to deal: their labels and, if the data set has groups (domains, roles), these."""

    labels: np.ndarray
    groups: np.ndarray | None = None

    def known_groups(self) -> np.ndarray:
        """The groups of the samples; ValueError if the data set has none."""
        if self.groups is None:
            raise ValueError(NO_GROUPS)
        return self.groups


class Scheme(NameEncoded):
    """A rule that deals samples to clients."""

    exact: ClassVar[bool] = True
    """Whether each sample goes to exactly one client, neither shared nor left out."""

    needs_groups: ClassVar[bool] = False
    """Whether it deals samples by their groups, which the data set must then have."""

    def versions(self, holdout: float = 0.0) -> dict[str, int]:
        """The science versions that shards depend on, if each client holds out this share."""
        return {f"partition:{self.name}": self.science}

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        """Raise ValueError if such a pool cannot be dealt; `groups` is None if it has none."""
        if self.needs_groups and groups is None:
            raise ValueError(NO_GROUPS)
        if self.exact and clients > samples:
            raise ValueError(f"{samples} samples cannot be dealt to {clients} clients")

    def scaled(self, share: float) -> Self:
        """The scheme for a share of the samples: limits that count samples shrink with it."""
        return self

    def deal(self, pool: Pool, clients: int, rng: Rng) -> Parts:
        """Deal the pool to clients: for each client, the indices of its samples."""
        raise NotImplementedError

    def borrow(self, parts: Parts, rng: Rng) -> tuple[Parts, Parts, np.ndarray]:
        """Return, for each client, the samples that it keeps of its own part and those that it
        borrows from others, and the overlapping clients, which borrow: none without an overlap."""
        nothing = np.empty(0, dtype=np.int64)
        return parts, [nothing for _ in parts], nothing


def group_by_owner(samples: np.ndarray, owners: np.ndarray, clients: int) -> Parts:
    """Group samples by the client that owns them, keeping their order."""
    order = np.argsort(owners, kind="stable")
    return np.split(samples[order], np.cumsum(np.bincount(owners, minlength=clients))[:-1])


class Iid(Scheme):
    """Shuffle all samples and cut them into parts whose sizes differ by at most one."""

    name: ClassVar[str] = "iid"

    def deal(self, pool: Pool, clients: int, rng: Rng) -> Parts:
        return np.array_split(rng.permutation(len(pool.labels)), clients)


@dataclass(frozen=True, kw_only=True)
class Classes(Scheme):
    """Client i holds class i mod C and k-1 random others. Holders share a class evenly."""

    name: ClassVar[str] = "classes"
    k: int = parameter(minimum=1, help="classes per client")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        super().check(classes, clients, samples)
        check_holders("classes", classes, clients, self.k, self.block(classes, clients))
        if clients * self.k > samples:
            raise ValueError(f"{clients} clients of {self.k} classes need over {samples} samples")

    def block(self, classes: int, clients: int) -> int:
        """The number of a client's classes that are assigned rather than drawn."""
        return 1

    def deal(self, pool: Pool, clients: int, rng: Rng) -> Parts:
        classes = int(pool.labels.max()) + 1
        holders_of = draw_holders(classes, clients, self.k, self.block(classes, clients), rng)

        def split(samples: np.ndarray, count: int) -> Parts:
            return np.array_split(rng.permutation(samples), count)

        return deal_to_holders("class", pool.labels, holders_of, clients, split)


def check_holders(plural: str, number: int, clients: int, k: int, block: int) -> None:
    """Raise ValueError if a client cannot hold `k` categories, or blocks leave some unheld."""
    if k > number:
        raise ValueError(f"a client cannot hold {k} {plural} where there are only {number}")
    if clients * block < number:
        raise ValueError(f"{clients} clients leave some of the {number} {plural} unheld")


def draw_holders(categories: int, clients: int, k: int, block: int, rng: Rng) -> list[list[int]]:
    """Draw the holders of each category (class or domain). Client i holds `k`: the `block` that
    begins at i * block, modulo their number, and others drawn at random."""
    holders_of: list[list[int]] = [[] for _ in range(categories)]
    for client in range(clients):
        first = (client * block + np.arange(block)) % categories
        rest = np.delete(np.arange(categories), first)
        for category in [*first, *rng.choice(rest, k - block, replace=False)]:
            holders_of[category].append(client)
    return holders_of


Cutter = Callable[[np.ndarray, int], Parts]
"""Cuts samples into so many parts."""


def deal_to_holders(
    kind: str, categories: np.ndarray, holders_of: list[list[int]], clients: int, cut: Cutter
) -> Parts:
    """Give each client its parts of the samples of its categories, cut by `cut`."""
    parts: list[Parts] = [[] for _ in range(clients)]
    samples_of = group_by_owner(np.arange(len(categories)), categories, len(holders_of))
    for number, (samples, holding) in enumerate(zip(samples_of, holders_of, strict=True)):
        if len(samples) < len(holding):
            counts = f"{len(samples)} samples for {len(holding)} clients"
            raise ValueError(f"{kind} {number} has {counts} that hold it")
        for client, part in zip(holding, cut(samples, len(holding)), strict=True):
            parts[client].append(part)
    return [np.concatenate(part) for part in parts]


class Covering(Classes):
    """Client i holds the i-th block of classes and others drawn at random, k in all. Blocks are
    just long enough to cover all classes, whose samples are split evenly among their holders. As
    blocks of one class, `classes` is NIID-Bench's rule, which leaves about 35 of 100 classes unheld
    by ten clients of ten; the accuracies that Stratify prints need every class."""

    name: ClassVar[str] = "covering"

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        if clients * self.k < classes:
            raise ValueError(f"{clients} clients of {self.k} classes cannot hold {classes}")
        super().check(classes, clients, samples)

    def block(self, classes: int, clients: int) -> int:
        return -(-classes // clients)


TRIES = 10_000


@dataclass(frozen=True, kw_only=True)
class Dirichlet(Scheme):
    """Dirichlet label skew in NIID-Bench's form: each class is split by shares drawn from
    Dir(alpha), and a client that already holds the mean size gets no more. The draw is repeated
    until every client has at least `minimum` samples.

    NIID-Bench draws shares for all clients, sets those of full ones to 0 and normalizes the rest.
    Drawn for the others alone they have the same distribution, and no sum that may vanish.
    """

    name: ClassVar[str] = "dir"
    balanced: ClassVar[bool] = True
    alpha: float = parameter(exclusiveMinimum=0, help="concentration: small is skewed")
    minimum: int = parameter(10, minimum=1, help="fewest samples of a client")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        if clients * self.minimum > samples:
            raise ValueError(f"{samples} samples cannot give {clients} clients {self.minimum} each")
        if self.minimum:  # else clients may be empty
            super().check(classes, clients, samples, groups)

    def scaled(self, share: float) -> Self:
        return dataclasses.replace(self, minimum=scaled_count(self.minimum, share))

    def deal(self, pool: Pool, clients: int, rng: Rng) -> Parts:
        per_class = np.bincount(pool.labels)
        for _ in range(TRIES):
            cuts = self.draw_cuts(per_class, clients, rng)
            if np.diff(cuts, axis=1).sum(axis=0).min() >= self.minimum:
                break
        else:
            relaxed = f" or '{dataclasses.replace(self, minimum=1)}'" if self.minimum > 1 else ""
            draws = f"none of {TRIES:,} draws gave each of {clients} clients {self.minimum} samples"
            raise ValueError(f"{draws}; try fewer clients, a larger alpha{relaxed}")
        return deal_by_counts(pool.labels, np.diff(cuts, axis=1), np.arange(clients), rng)

    def draw_cuts(self, per_class: np.ndarray, clients: int, rng: Rng) -> np.ndarray:
        """Draw how to cut the classes: for each (rows), the boundaries between the clients'
        samples, from 0 to the size of the class."""
        mean_size = per_class.sum() / clients
        sizes = np.zeros(clients, dtype=np.int64)
        cuts = np.zeros((len(per_class), clients + 1), dtype=np.int64)
        for label, count in enumerate(per_class):
            is_open = sizes < mean_size if self.balanced else np.ones(clients, dtype=bool)
            open_clients = np.flatnonzero(is_open)
            shares = np.zeros(clients)
            shares[open_clients] = rng.dirichlet(np.full(len(open_clients), self.alpha))
            cumulated = np.cumsum(shares)
            cumulated[open_clients[-1] :] = 1
            cuts[label, 1:-1] = (cumulated[:-1] * count).astype(np.int64)
            cuts[label, -1] = count
            sizes += np.diff(cuts[label])
        return cuts


def deal_by_counts(labels: np.ndarray, counts: np.ndarray, order: np.ndarray, rng: Rng) -> Parts:
    """Give clients, in this `order`, so many samples of each class (class, client), at random."""
    samples = [rng.permutation(np.flatnonzero(labels == label)) for label in range(len(counts))]
    owners = [np.repeat(order, row) for row in counts]
    return group_by_owner(np.concatenate(samples), np.concatenate(owners), len(order))


@dataclass(frozen=True, kw_only=True)
class PlainDirichlet(Dirichlet):
    """Dirichlet label skew without the balance rule, so that client sizes vary too."""

    name: ClassVar[str] = "dirplain"
    balanced: ClassVar[bool] = False
    minimum: int = parameter(1, minimum=0, help="fewest samples of a client; 0 allows empty ones")


@dataclass(frozen=True, kw_only=True)
class Quantity(PlainDirichlet):
    """Split all samples by shares drawn from Dir(alpha), whatever their labels."""

    name: ClassVar[str] = "quantity"
    minimum: int = parameter(10, minimum=1, help="fewest samples of a client")

    def deal(self, pool: Pool, clients: int, rng: Rng) -> Parts:
        return super().deal(Pool(np.zeros_like(pool.labels)), clients, rng)


@dataclass(frozen=True, kw_only=True)
class Domains(Scheme):
    """Stratify's #D = d: client i holds domain i mod G and d-1 others drawn at random. Each class
    of a domain is split evenly among the domain's holders."""

    name: ClassVar[str] = "domains"
    needs_groups: ClassVar[bool] = True
    d: int = parameter(minimum=1, help="domains per client")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        super().check(classes, clients, samples, groups)
        check_holders("domains", groups or 0, clients, self.d, 1)

    def deal(self, pool: Pool, clients: int, rng: Rng) -> Parts:
        groups = pool.known_groups()
        holders_of = draw_holders(int(groups.max()) + 1, clients, self.d, 1, rng)
        split = functools.partial(split_evenly, pool, rng)
        return deal_to_holders("domain", groups, holders_of, clients, split)


@dataclass(frozen=True, kw_only=True)
class IsolatedDomain(Scheme):
    """Stratify's Table V: one domain is isolated at the first client, which holds all of it and
    nothing else. Each class of the other domains is split evenly among the other clients."""

    name: ClassVar[str] = "onedomain"
    needs_groups: ClassVar[bool] = True
    domain: int = parameter(minimum=0, help="the first client's domain, counted from 0")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        super().check(classes, clients, samples, groups)
        if self.domain >= (groups or 0):
            raise ValueError(f"there is no domain {self.domain}: the first of {groups} is number 0")
        if clients < 2:
            raise ValueError("a domain at one client and the others elsewhere need two clients")

    def deal(self, pool: Pool, clients: int, rng: Rng) -> Parts:
        alone = pool.known_groups() == self.domain
        if not alone.any() or (~alone).sum() < clients - 1:
            share = f"{alone.sum()} of {len(alone)} samples"
            raise ValueError(f"domain {self.domain} has {share} for one of {clients} clients")
        rest = split_evenly(pool, rng, np.flatnonzero(~alone), clients - 1)
        return [np.flatnonzero(alone), *rest]


class DirichletDomains(Dirichlet):
    """`dir` with domains in place of classes: draws shares of each domain, whatever the labels."""

    name: ClassVar[str] = "dirdomains"
    needs_groups: ClassVar[bool] = True

    def deal(self, pool: Pool, clients: int, rng: Rng) -> Parts:
        return super().deal(Pool(pool.known_groups()), clients, rng)


def split_evenly(pool: Pool, rng: Rng, samples: np.ndarray, count: int) -> Parts:
    """Split samples into `count` parts whose sizes differ by at most one, in total and within each
    class of each domain: every part takes each `count`-th sample of the samples sorted by both."""
    shuffled = rng.permutation(samples)
    ordered = shuffled[np.lexsort((pool.labels[shuffled], pool.known_groups()[shuffled]))]
    return [ordered[start::count] for start in range(count)]


@dataclass(frozen=True, kw_only=True)
class Roles(Scheme):
    """Roles (the data set's groups) are dealt to the clients in turn, largest first and over and
    over, until each client has k; each holder of a role has all its samples. Small roles may be
    left out, or roles have several holders. Nothing is random: all seeds deal the same."""

    name: ClassVar[str] = "roles"
    exact: ClassVar[bool] = False
    needs_groups: ClassVar[bool] = True
    k: int = parameter(minimum=1, help="roles per client")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        super().check(classes, clients, samples, groups)
        if self.k > (groups or 0):
            raise ValueError(f"a client cannot hold {self.k} roles where there are only {groups}")

    def deal(self, pool: Pool, clients: int, rng: Rng) -> Parts:
        groups = pool.known_groups()
        sizes = np.bincount(groups)
        roles = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
        if self.k > len(roles):
            raise ValueError(f"a client cannot hold {self.k} roles of {len(roles)} with samples")
        samples = group_by_owner(np.arange(len(groups)), groups, len(sizes))
        hands = roles[dealt_roles(len(roles), clients, self.k)]
        return [np.concatenate(list(map(samples.__getitem__, hand))) for hand in hands]


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


class EqualSizes(Scheme):
    """Base of schemes that give clients equally many of the samples left, in random order."""

    def deal(self, pool: Pool, clients: int, rng: Rng) -> Parts:
        order = rng.permutation(clients)
        counts = self.draw_counts(np.bincount(pool.labels), order, rng)
        return deal_by_counts(pool.labels, counts[order].T, order, rng)

    def draw_counts(self, per_class: np.ndarray, order: np.ndarray, rng: Rng) -> np.ndarray:
        """Draw how many samples of each class each client gets (client, class). Clients draw in
        this `order` from `per_class` samples."""
        size, larger = divmod(int(per_class.sum()), len(order))
        counts = np.zeros((len(order), len(per_class)), dtype=np.int64)
        stock = per_class.copy()
        for client in order:
            counts[client] = self.draw_client(size + (client < larger), stock, rng)
            stock -= counts[client]
        return counts

    def draw_client(self, size: int, stock: np.ndarray, rng: Rng) -> np.ndarray:
        """Draw how many of a client's `size` samples are of each class, at most the `stock`."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class DirichletClients(EqualSizes):
    """Dirichlet label skew by client (Hsu et al. 2019, whose alpha is ours times the classes): each
    draws its shares of the classes from Dir(alpha), and by these its samples one after another,
    from classes that have some left."""

    name: ClassVar[str] = "dirclients"
    alpha: float = parameter(exclusiveMinimum=0, help="concentration: small is skewed")

    def draw_client(self, size: int, stock: np.ndarray, rng: Rng) -> np.ndarray:
        shares = rng.dirichlet(np.full(len(stock), self.alpha))
        counts = np.zeros_like(stock)
        while missing := size - counts.sum():
            weights = shares * (counts < stock)
            weights = weights if weights.any() else stock - counts  # tiny shares are 0 as floats
            counts = np.minimum(counts + rng.multinomial(missing, weights / weights.sum()), stock)
        return counts


@dataclass(frozen=True, kw_only=True)
class Sampled(EqualSizes):
    """Each client draws a number of classes from `low` to `high`, then that many of those with
    samples left, and takes equally many samples of each. If these run short, the rest comes from
    the fullest other classes, so the last clients end up with more classes than they drew."""

    name: ClassVar[str] = "sampled"
    low: int = parameter(minimum=1, help="the fewest classes that a client draws")
    high: int = parameter(minimum=1, help="the most classes that a client draws")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        super().check(classes, clients, samples)
        if self.low > self.high:
            raise ValueError(f"{self.low} is more than {self.high}; the smaller number comes first")
        if self.high > classes:
            raise ValueError(f"a client cannot draw {self.high} classes of {classes}")

    def draw_client(self, size: int, stock: np.ndarray, rng: Rng) -> np.ndarray:
        available = np.flatnonzero(stock)
        chosen = rng.permutation(available)[: rng.integers(self.low, self.high, endpoint=True)]
        counts = np.zeros_like(stock)
        equal, extra = divmod(size, len(chosen))
        counts[chosen] = np.minimum(equal + (np.arange(len(chosen)) < extra), stock[chosen])
        rest = stock - counts
        fullest = np.argsort(-rest, kind="stable")
        before = np.cumsum(rest[fullest]) - rest[fullest]
        counts[fullest] += np.clip(size - counts.sum() - before, 0, rest[fullest])
        return counts


@dataclass(frozen=True, kw_only=True)
class Overlap(Scheme):
    """After `base` has dealt, randomly chosen clients also borrow samples of others, until a given
    ratio of what they hold is borrowed (PECO, Fig. 1).

    Only the others lend, equally many samples each as far as that divides evenly and they have
    enough. With `replace`, borrowed samples replace some of a client's own, which then belong to
    nobody. At a ratio of 0 nobody borrows, but a selector may treat the chosen ones differently.
    """

    name: ClassVar[str] = "overlap"
    base: Scheme
    ratios: tuple[float, ...]
    replace: bool = False

    @classmethod
    def name_pattern(cls) -> str:
        return "SCHEME-overlapRATIOxCLIENTS[-replace] or SCHEME-overlapRATIO+RATIO[-replace]"

    def versions(self, holdout: float = 0.0) -> dict[str, int]:
        version = self.science
        if holdout and (any(self.ratios) or self.replace):
            version += 1  # held-out samples were once set aside after borrowing
        return self.base.versions(holdout) | {f"partition:{self.name}": version}

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        self.base.check(classes, clients, samples, groups)
        if not self.base.exact:
            raise ValueError(f"'{self.base}' already lets clients share samples; leave out overlap")
        if len(self.ratios) >= clients:
            raise ValueError(f"nobody is left to borrow from: all {clients} clients overlap")

    def scaled(self, share: float) -> Self:
        return dataclasses.replace(self, base=self.base.scaled(share))

    def deal(self, pool: Pool, clients: int, rng: Rng) -> Parts:
        return self.base.deal(pool, clients, rng)

    def borrow(self, parts: Parts, rng: Rng) -> tuple[Parts, Parts, np.ndarray]:
        chosen, donors = np.split(rng.permutation(len(parts)), [len(self.ratios)])
        sizes = np.array([len(part) for part in parts])
        retained, borrowed = map(list, super().borrow(parts, rng)[:2])
        for client, ratio in zip(chosen, self.ratios, strict=True):
            amount = round((ratio if self.replace else ratio / (1 - ratio)) * sizes[client])
            if amount > (size := sizes[donors].sum()):
                raise ValueError(f"a client should borrow {amount} samples, the others hold {size}")
            donors = rng.permutation(donors)
            lent = share_evenly(amount, sizes[donors])
            pairs = [(parts[donors[index]], lent[index]) for index in np.flatnonzero(lent)]
            pieces = [rng.choice(part, count, replace=False) for part, count in pairs]
            borrowed[client] = np.concatenate([borrowed[client], *pieces])
            if self.replace:
                retained[client] = rng.permutation(parts[client])[amount:]
        return retained, borrowed, chosen

    def __str__(self) -> str:
        ratios = "+".join(f"{ratio:g}" for ratio in self.ratios)
        if len(set(self.ratios)) == 1:
            ratios = f"{self.ratios[0]:g}x{len(self.ratios)}"
        return f"{self.base}-overlap{ratios}{'-replace' if self.replace else ''}"


def share_evenly(total: int, available: np.ndarray) -> np.ndarray:
    """How many of `total` samples each lender gives: equally many, or all it has. A remainder comes
    from those with the most."""
    gives = np.zeros_like(available)
    for rank, giver in enumerate(np.argsort(available, kind="stable")):
        gives[giver] = min(available[giver], total // (len(available) - rank))
        total -= gives[giver]
    return gives


RATIO = r"0(?:\.[0-9]+)?"
RATIOS = re.compile(rf"({RATIO}(?:\+{RATIO})*)(?:x([1-9][0-9]{{0,5}}))?(-replace)?")


def parse_overlap(base: Scheme, ratios: str) -> Overlap:
    """Build the scheme that `{base}-overlap{ratios}` describes. The ratios are `0.2x2` for two
    clients, or `0.1+0.3` for one client each, either of them optionally followed by `-replace`."""
    text = f"{base}-overlap{ratios}"
    if not (match := RATIOS.fullmatch(ratios)):
        form = f"{Overlap.name_pattern()} with ratios from 0 to below 1"
        raise UserError(f"partition '{text}' is not of the form {form}")
    values = tuple(sorted([*map(float, match[1].split("+"))] * int(match[2] or 1)))
    scheme = Overlap(base=base, ratios=values, replace=bool(match[3]))
    if str(scheme) != text:
        raise UserError(f"partition '{text}' is written '{scheme}'")
    return scheme


SCHEMES = Catalog("cohort.partition.schemes", Scheme, (
    Classes, Covering, Dirichlet, DirichletClients, DirichletDomains, PlainDirichlet, Domains, Iid,
    IsolatedDomain, Overlap, Quantity, Roles, Sampled,
))  # fmt: skip


@functools.cache
def parse_partition(text: str) -> Scheme:
    """Build the scheme that a name such as `classes-2` or `dir-0.1-overlap0.2x2` describes."""
    base, marker, ratios = text.partition("-overlap")
    scheme = parse(base, SCHEMES, "partition")
    return parse_overlap(scheme, ratios) if marker else scheme
