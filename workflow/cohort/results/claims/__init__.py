"""The kinds of claims a study can make; a file in `kinds/` adds one.

Planning imports this package, so its modules load pandas lazily.
"""

from cohort.core.components import Catalog
from cohort.results.claims.claim import Claim
from cohort.results.claims.kinds.average import Average
from cohort.results.claims.kinds.best import Best
from cohort.results.claims.kinds.bound import Bound
from cohort.results.claims.kinds.compare import Compare
from cohort.results.claims.kinds.gain import Gain
from cohort.results.claims.kinds.gap import WiderGap
from cohort.results.claims.kinds.order import Order
from cohort.results.claims.kinds.slower import Slower
from cohort.results.claims.kinds.spread import Spread
from cohort.results.claims.matrix import Comparison, Matrix, Point

CLAIMS = Catalog(
    "cohort.results.claims.kinds",
    Claim,
    (Average, Best, Bound, Compare, Gain, WiderGap, Order, Slower, Spread),
)

__all__ = ["CLAIMS", "Claim", "Comparison", "Matrix", "Point"]
