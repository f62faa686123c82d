"""How the learning rate of a centralized run changes: one file for each family."""

from cohort.core.component_names import parse
from cohort.core.components import catalog
from cohort.training.schedules.schedule import Schedule

SCHEDULES = catalog("cohort.training.schedules", Schedule)

__all__ = ["SCHEDULES", "Schedule", "parse_schedule"]


def parse_schedule(text: str) -> Schedule:
    """The schedule that a name means: `onecycle`, `step-30`, `plateau-patience3`."""
    return parse(text, SCHEDULES, "schedule")
