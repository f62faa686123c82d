"""Participation: which clients of a cohort answer, and with how much work."""

import functools

from cohort.core.component_names import parse
from cohort.core.components import Catalog
from cohort.training.participation.participation import Participation

PARTICIPATIONS = Catalog("cohort.training.participation", Participation)


@functools.cache
def parse_participation(text: str) -> Participation:
    """Build the participation that a name like `dropout-0.3` describes."""
    return parse(text, PARTICIPATIONS, "participation")


__all__ = ["PARTICIPATIONS", "Participation", "parse_participation"]
