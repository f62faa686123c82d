"""Procedures, which say how a run goes: their settings in `procedure`, their rounds beside it."""

from cohort.training.procedures.procedure import PROCEDURES, Procedure, parse_procedure

__all__ = ["PROCEDURES", "Procedure", "parse_procedure"]
