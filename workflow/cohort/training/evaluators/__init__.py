"""Evaluators, which measure a run between its rounds: one file each."""

from cohort.core.components import catalog
from cohort.training.evaluators.evaluator import Evaluator

EVALUATORS = catalog("cohort.training.evaluators", Evaluator)

__all__ = ["EVALUATORS", "Evaluator"]
