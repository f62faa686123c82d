"""FedEntropy's judgment: a random cohort trains, and the updates that make its soft labels less even are left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.selection.abilities import Filtering
from cohort.selection.entropy import TIE, entropy_bits
from cohort.selection.random import Random
from cohort.selection.selector import Reports


@dataclass(frozen=True, kw_only=True)
class Reselect(Random, Filtering):
    """Each client of the cohort sends the mean of its trained model's soft labels on its own samples. The server leaves out, one at a time,
    the client without which the entropy of the mean soft label (weighted by the clients' sizes) is highest, as long as it grows.

    That is the judgment of its authors' code, after a uniform draw, as FedEntOpt describes it; theirs favors clients that were kept before.
    """

    name: ClassVar[str] = "reselect"
    needs: ClassVar[frozenset[str]] = frozenset({"soft_labels"})

    def keep(self, reports: Reports, sizes: np.ndarray) -> np.ndarray:
        weighted = (
            np.nan_to_num(reports["soft_labels"]) * sizes[:, None]
        )  # who has no samples has no soft label
        kept = np.arange(len(sizes))
        highest = entropy_bits(weighted.sum(axis=0))
        while len(kept) > 1:
            without = entropy_bits(weighted[kept].sum(axis=0) - weighted[kept])
            if not without.max() > highest + TIE:
                break
            highest = without.max()
            kept = np.delete(kept, np.flatnonzero(without >= highest - TIE)[0])
        return np.isin(np.arange(len(sizes)), kept)
