"""Needs, the information beyond updates that selectors may require: one file each."""

from cohort.core.components import Catalog
from cohort.needs.need import EvaluationContext, Need

NEEDS = Catalog("cohort.needs", Need)

__all__ = ["NEEDS", "EvaluationContext", "Need"]
