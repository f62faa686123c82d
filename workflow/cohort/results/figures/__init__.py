"""The kinds of figures a study can ask for; a file in `kinds/` adds one.

Planning imports this package, so its modules load pandas, matplotlib and seaborn lazily.
"""

from cohort.core.components import Catalog
from cohort.results.figures.kind import Kind

KINDS = Catalog("cohort.results.figures.kinds", Kind)

__all__ = ["KINDS", "Kind"]
