"""Selectors, which choose the cohort of each round."""

from cohort.core.components import Catalog
from cohort.selection import entropy, oort, pools, sampling, simple, updates
from cohort.selection.peco import Peco
from cohort.selection.selector import Selector

SELECTORS = Catalog("cohort.selection", Selector, (  # type: ignore[type-abstract]
    entropy.Entropy, entropy.FedCbs, entropy.KL, entropy.Reselect, updates.FedCor, oort.Oort,
    oort.OortFedScale, Peco, pools.CpowD, pools.PowD, pools.Probe, pools.RpowD,
    sampling.BySize, sampling.ClusteredBySize, sampling.ClusteredByUpdates,
    sampling.OptimalSampling, simple.Afl, pools.FedCs, oort.Tifl,
    simple.FixedProbability, simple.HighestLoss, simple.HighestTrainingLoss, simple.Random,
    simple.RoundRobin, simple.Skewed, simple.Ucb, updates.Diversity, updates.DivFl, updates.HicsFl,
))  # fmt: skip

__all__ = ["SELECTORS", "Selector"]
