"""How a run goes: one file each."""

import functools

from cohort.core.component_names import parse
from cohort.core.components import catalog
from cohort.training.procedures.procedure import Procedure

PROCEDURES = catalog("cohort.training.procedures", Procedure)

__all__ = ["PROCEDURES", "Procedure", "parse_procedure"]


@functools.cache
def parse_procedure(text: str) -> Procedure:
    """The procedure that a name means: `federated`, `centralized`, `concat-5`."""
    return parse(text, PROCEDURES, "procedure")
