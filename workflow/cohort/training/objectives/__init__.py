"""Objectives, the loss that each client minimizes: one file each."""

from cohort.core.components import Catalog
from cohort.training.objectives.objective import Objective

OBJECTIVES = Catalog("cohort.training.objectives", Objective)

__all__ = ["OBJECTIVES", "Objective"]
