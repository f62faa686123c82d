"""PECO's overlap, on top of any scheme: some clients also hold samples of others."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.errors import UserError
from cohort.partition.scheme import Parts, Pool, Scheme


@dataclass(frozen=True, kw_only=True)
class Overlap(Scheme):
    """After `base` has dealt, randomly chosen clients also borrow samples of others, until a given
    ratio of what they hold is borrowed (PECO, Fig. 1).

    Lenders are the clients that were not chosen: if the chosen ones lent too, more than the given
    ratio of their samples would overlap. The paper does not say how many samples each lends; here
    all lend equally many, as far as that divides evenly and they have enough.

    With `replace`, clients keep their size: borrowed samples replace some of their own, which then
    belong to nobody. At a ratio of 0 nobody borrows, but who overlaps is chosen all the same, for a
    selector that treats these clients differently.
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
            raise ValueError(
                f"'{self.base}' already lets clients share samples; "
                "only a partition that deals each sample once can have an overlap"
            )
        if len(self.ratios) >= clients:
            raise ValueError(
                f"{len(self.ratios)} overlapping clients of {clients} leave nobody to borrow from"
            )

    def scaled(self, share: float) -> Scheme:
        return dataclasses.replace(self, base=self.base.scaled(share))

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        return self.base.deal(pool, clients, rng)

    def borrow(self, parts: Parts, rng: np.random.Generator) -> tuple[Parts, Parts]:
        chosen, donors = self._split(len(parts), rng)
        sizes = np.array([len(part) for part in parts])
        kept, borrowed = (list(both) for both in super().borrow(parts, rng))
        for client, ratio in zip(chosen, self.ratios, strict=True):
            amount = round((ratio if self.replace else ratio / (1 - ratio)) * sizes[client])
            if amount > sizes[donors].sum():
                raise ValueError(
                    f"a client of {sizes[client]} samples should borrow {amount}, "
                    f"but the others hold {sizes[donors].sum()}"
                )
            donors = rng.permutation(donors)
            lent = share_evenly(amount, sizes[donors])
            pieces = [
                rng.choice(parts[donors[donor]], lent[donor], replace=False)
                for donor in np.flatnonzero(lent)
            ]
            borrowed[client] = np.concatenate([borrowed[client], *pieces])
            if self.replace:
                kept[client] = rng.permutation(parts[client])[amount:]
        return kept, borrowed

    def overlapping_clients(self, clients: int, rng: np.random.Generator) -> np.ndarray:
        return self._split(clients, rng)[0]

    def _split(self, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """The numbers of the overlapping clients, and those of all others."""
        return np.split(rng.permutation(clients), [len(self.ratios)])

    def __str__(self) -> str:
        short = f"{self.ratios[0]:g}x{len(self.ratios)}"
        ratios = (
            short if len(set(self.ratios)) == 1 else "+".join(f"{ratio:g}" for ratio in self.ratios)
        )
        return f"{self.base}-overlap{ratios}{'-replace' if self.replace else ''}"


def share_evenly(total: int, available: np.ndarray) -> np.ndarray:
    """How many of `total` samples each lender gives: equally many, or all it has. A remainder comes
    from those with the most."""
    gives = np.zeros_like(available)
    for rank, giver in enumerate(np.argsort(available, kind="stable")):
        gives[giver] = min(available[giver], total // (len(available) - rank))
        total -= gives[giver]
    return gives


def parse_overlap(base: Scheme, ratios: str) -> Overlap:
    """Build the scheme that `{base}-overlap{ratios}` describes. The ratios are `0.2x2` for two
    clients, or `0.1+0.3` for one client each, either of them optionally followed by `-replace`."""
    text = f"{base}-overlap{ratios}"
    ratios, replace = ratios.removesuffix("-replace"), ratios.endswith("-replace")
    try:
        repeated = re.fullmatch(r"([0-9.]+)x([1-9][0-9]{0,5})", ratios)
        read = (
            (float(repeated[1]),) * int(repeated[2])
            if repeated
            else tuple(sorted(map(float, ratios.split("+"))))
        )
        if not all(0 <= ratio < 1 for ratio in read):
            raise ValueError
    except ValueError:
        raise UserError(
            f"partition '{text}' is not of the form {Overlap.name_pattern()} with ratios from 0 to "
            "below 1"
        ) from None
    scheme = Overlap(base=base, ratios=read, replace=replace)
    if str(scheme) != text:
        raise UserError(f"partition '{text}' is written '{scheme}'")
    return scheme
