"""Procedures, which say how a run goes: one folder each."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from cohort.core.component_names import parse
from cohort.core.components import Catalog
from cohort.training.procedures.procedure import Procedure

if TYPE_CHECKING:
    from cohort.training.task import Task

PROCEDURES = Catalog("cohort.training.procedures", Procedure)

__all__ = ["PROCEDURES", "Procedure", "parse_procedure", "procedure_of"]


@functools.cache
def parse_procedure(text: str) -> Procedure:
    """The procedure that a name means: `federated`, `centralized`, `concat-5`."""
    return parse(text, PROCEDURES, "procedure")


def procedure_of(task: Task) -> Procedure:
    """The procedure that the settings of a task name."""
    return parse_procedure(task.settings.procedure)
