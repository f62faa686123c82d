"""Needs, the information beyond updates that selectors may require: one file each."""

from cohort.core.components import catalog
from cohort.needs.need import EvaluationContext, Need

NEEDS = catalog("cohort.needs", Need)

__all__ = ["NEEDS", "EvaluationContext", "Need"]
