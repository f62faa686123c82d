"""Selectors, which choose the cohort of each round: one file each."""

from cohort.core.components import Catalog
from cohort.selection.selector import Selector

SELECTORS = Catalog("cohort.selection", Selector)

__all__ = ["SELECTORS", "Selector"]
