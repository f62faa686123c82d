"""Who trains next: one file per selector."""

from cohort.core.components import catalog
from cohort.selection.selector import Selector

SELECTORS = catalog("cohort.selection", Selector)

__all__ = ["SELECTORS", "Selector"]
