"""Selectors, which choose the cohort of each round."""

from cohort.core.components import Catalog
from cohort.selection.entropy import KL, Entropy, FedCbs, Reselect
from cohort.selection.fedcor import FedCor
from cohort.selection.oort import Oort, OortFedScale
from cohort.selection.peco import Peco
from cohort.selection.pools import CpowD, PowD, Probe, RpowD
from cohort.selection.selector import Selector
from cohort.selection.simple import (
    FixedProbability,
    HighestLoss,
    HighestTrainingLoss,
    Random,
    RoundRobin,
    Skewed,
    Ucb,
)
from cohort.selection.updates import Diversity, DivFl, HicsFl

SELECTORS = Catalog(
    "cohort.selection",
    Selector,
    (
        CpowD,
        Diversity,
        DivFl,
        Entropy,
        FedCbs,
        FedCor,
        FixedProbability,
        HicsFl,
        KL,
        HighestLoss,
        Oort,
        OortFedScale,
        Peco,
        PowD,
        Probe,
        Random,
        Reselect,
        RoundRobin,
        RpowD,
        Skewed,
        HighestTrainingLoss,
        Ucb,
    ),
)

__all__ = ["SELECTORS", "Selector"]
