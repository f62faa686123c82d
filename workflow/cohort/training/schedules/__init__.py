"""Learning rate schedules of centralized runs."""

import functools

from cohort.core.component_names import parse
from cohort.core.components import Catalog
from cohort.training.schedules.schedule import Schedule

SCHEDULES = Catalog("cohort.training.schedules", Schedule)

__all__ = ["SCHEDULES", "Schedule", "parse_schedule"]


@functools.cache
def parse_schedule(text: str) -> Schedule:
    """Build the schedule that a name like `onecycle`, `step-30` or `plateau-patience3`
    describes."""
    return parse(text, SCHEDULES, "schedule")
