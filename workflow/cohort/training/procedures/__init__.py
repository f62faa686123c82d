"""Procedures, which say how a run goes: one folder each."""

from __future__ import annotations

import functools

from cohort.core.component_names import parse
from cohort.core.components import Catalog
from cohort.training.procedures.procedure import Procedure

PROCEDURES = Catalog("cohort.training.procedures", Procedure)

__all__ = ["PROCEDURES", "Procedure", "parse_procedure"]


@functools.cache
def parse_procedure(text: str) -> Procedure:
    """Build the procedure that a name describes: `federated`, `centralized`, `concat-5`."""
    return parse(text, PROCEDURES, "procedure")
