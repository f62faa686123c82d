"""Evaluators, which measure a run between its rounds: one file each."""

from cohort.core.components import Catalog
from cohort.training.evaluators.evaluator import Evaluator

EVALUATORS = Catalog("cohort.training.evaluators", Evaluator)

__all__ = ["EVALUATORS", "Evaluator"]
