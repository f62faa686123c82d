"""How results are drawn: one file per kind of figure. Nothing here imports pandas or matplotlib before something is drawn."""

from cohort.core.components import catalog
from cohort.figures.kind import Kind

KINDS = catalog("cohort.figures.kinds", Kind)

__all__ = ["KINDS", "Kind"]
