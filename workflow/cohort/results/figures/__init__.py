"""The kinds of figures a study can ask for; modules in `kinds/` define them. Planning imports this
package, so its modules load pandas, matplotlib and seaborn lazily."""

from cohort.core.components import Catalog
from cohort.results.figures.kind import Kind
from cohort.results.figures.kinds.means import Bars, CostCurves, Curves, Lines
from cohort.results.figures.kinds.others import Interval, Scatter, Shards

ALL = (Bars, CostCurves, Curves, Interval, Lines, Scatter, Shards)
KINDS = Catalog("cohort.results.figures.kinds", Kind, ALL)

__all__ = ["KINDS", "Kind"]
