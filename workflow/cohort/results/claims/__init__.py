"""The kinds of claims of a study. Planning imports these modules, so they load pandas lazily."""

from cohort.core.components import Catalog
from cohort.results.claims import kinds
from cohort.results.claims.claim import Claim, Comparison, Matrix, Point

KINDS = (kinds.Average, kinds.Best, kinds.Compare, kinds.Gain, kinds.WiderGap, kinds.Order)
CLAIMS = Catalog(kinds.__name__, Claim, (*KINDS, kinds.Range, kinds.Slower))

__all__ = ["CLAIMS", "Claim", "Comparison", "Matrix", "Point"]
