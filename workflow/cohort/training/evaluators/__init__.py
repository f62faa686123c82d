"""How a run is evaluated as it goes: one file for each way."""

from cohort.core.components import catalog
from cohort.training.evaluators.evaluator import Evaluator

EVALUATORS = catalog("cohort.training.evaluators", Evaluator)

__all__ = ["EVALUATORS", "Evaluator"]
