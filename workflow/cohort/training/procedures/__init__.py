"""How a run goes: one file each."""

from cohort.components import catalog
from cohort.training.procedures.procedure import Procedure

PROCEDURES = catalog("cohort.training.procedures", Procedure)

__all__ = ["PROCEDURES", "Procedure"]
