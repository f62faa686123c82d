"""The kinds of claims a study can make; a file in `kinds/` adds one.

Planning imports this package, so its modules load pandas lazily.
"""

from cohort.claims.claim import Claim
from cohort.claims.matrix import Comparison, Matrix, Point
from cohort.core.components import Catalog

CLAIMS = Catalog("cohort.claims.kinds", Claim)

__all__ = ["CLAIMS", "Claim", "Comparison", "Matrix", "Point"]
