"""Objectives, the loss that each client minimizes: one file each."""

from cohort.core.components import catalog
from cohort.training.objectives.objective import Objective

OBJECTIVES = catalog("cohort.training.objectives", Objective)

__all__ = ["OBJECTIVES", "Objective"]
