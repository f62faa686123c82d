"""The kinds of claims a study can make; a file in `kinds/` adds one.

Planning imports this package, so its modules load pandas lazily.
"""

from cohort.core.components import Catalog
from cohort.results.claims.claim import Claim
from cohort.results.claims.matrix import Comparison, Matrix, Point

CLAIMS = Catalog("cohort.results.claims.kinds", Claim)

__all__ = ["CLAIMS", "Claim", "Comparison", "Matrix", "Point"]
