"""How the learning rate of a centralized run changes: one file for each family."""

from cohort.components import catalog
from cohort.training.schedules.schedule import Schedule

SCHEDULES = catalog("cohort.training.schedules", Schedule)

__all__ = ["SCHEDULES", "Schedule"]
