"""The kinds of claims a study can make.

Planning imports this package, so its modules load pandas lazily.
"""

from cohort.core.components import Catalog
from cohort.results.claims.claim import Claim
from cohort.results.claims.kinds.differences import Average, Compare, Gain, WiderGap
from cohort.results.claims.kinds.levels import Best, Order, Range, Slower
from cohort.results.claims.matrix import Comparison, Matrix, Point

CLAIMS = Catalog(
    "cohort.results.claims.kinds",
    Claim,
    (Average, Best, Compare, Gain, WiderGap, Order, Range, Slower),
)

__all__ = ["CLAIMS", "Claim", "Comparison", "Matrix", "Point"]
