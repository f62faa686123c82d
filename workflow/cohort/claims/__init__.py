"""Claims of a paper and whether they hold: one file per kind. Nothing here imports pandas before something is judged."""

from cohort.claims.claim import Claim
from cohort.claims.matrix import Comparison, Matrix, Point
from cohort.core.components import catalog

CLAIMS = catalog("cohort.claims.kinds", Claim)

__all__ = ["CLAIMS", "Claim", "Comparison", "Matrix", "Point"]
