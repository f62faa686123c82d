"""The kinds of figures a study can ask for; a file in `kinds/` adds one.

Planning imports this package, so its modules load pandas, matplotlib and seaborn lazily.
"""

from cohort.core.components import Catalog
from cohort.results.figures.kind import Kind
from cohort.results.figures.kinds.bars import Bars
from cohort.results.figures.kinds.cost_curves import CostCurves
from cohort.results.figures.kinds.critical_difference import CriticalDifference
from cohort.results.figures.kinds.curves import Curves
from cohort.results.figures.kinds.interval import Interval
from cohort.results.figures.kinds.lines import Lines
from cohort.results.figures.kinds.performance_profile import PerformanceProfile
from cohort.results.figures.kinds.scatter import Scatter
from cohort.results.figures.kinds.shards import Shards
from cohort.results.figures.kinds.win_rates import WinRates

KINDS = Catalog(
    "cohort.results.figures.kinds",
    Kind,
    (
        Bars,
        CostCurves,
        CriticalDifference,
        Curves,
        Interval,
        Lines,
        PerformanceProfile,
        Scatter,
        Shards,
        WinRates,
    ),
)

__all__ = ["KINDS", "Kind"]
