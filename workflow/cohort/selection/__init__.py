"""Selectors, which choose the cohort of each round: one file each."""

from cohort.core.components import catalog
from cohort.selection.selector import Selector

SELECTORS = catalog("cohort.selection", Selector)

__all__ = ["SELECTORS", "Selector"]
