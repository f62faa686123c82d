"""FedEntropy: exclude the updates that make the mean soft label less uniform."""

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
    """Draws a uniform cohort and filters its updates by soft labels: each client sends the mean
    softmax output of its local model on its own samples.

    As long as it increases the entropy of the mean soft label, weighted by data size, the server
    excludes the client without which that entropy is highest. This is the rule of the authors'
    code after a uniform draw, as FedEntOpt describes it; their code prefers clients kept earlier.
    """

    name: ClassVar[str] = "reselect"
    needs: ClassVar[frozenset[str]] = frozenset({"soft_labels"})

    def keep(self, reports: Reports, sizes: np.ndarray) -> np.ndarray:
        soft_labels = np.nan_to_num(reports["soft_labels"])  # NaN for a client without samples
        weighted = soft_labels * sizes[:, None]
        kept = np.arange(len(sizes))
        highest = entropy_bits(weighted.sum(axis=0))
        while len(kept) > 1:
            without = entropy_bits(weighted[kept].sum(axis=0) - weighted[kept])
            if not without.max() > highest + TIE:
                break
            highest = without.max()
            kept = np.delete(kept, np.flatnonzero(without >= highest - TIE)[0])
        return np.isin(np.arange(len(sizes)), kept)
