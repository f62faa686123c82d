"""Procedures, which say how a run goes: one folder each."""

from __future__ import annotations

import functools

from cohort.core.components import Catalog, parse
from cohort.training.procedures.centralized import Centralized
from cohort.training.procedures.concat import Concat
from cohort.training.procedures.federated import Federated
from cohort.training.procedures.fedtan import FedTan
from cohort.training.procedures.masked_labels import MaskedLabels
from cohort.training.procedures.procedure import Procedure
from cohort.training.procedures.stratified import (
    Sequential,
    StratifiedBatch,
    StratifiedHybrid,
    StratifiedSingle,
)

PROCEDURES = Catalog(
    "cohort.training.procedures",
    Procedure,
    (
        Centralized,
        Concat,
        Federated,
        FedTan,
        MaskedLabels,
        Sequential,
        StratifiedBatch,
        StratifiedHybrid,
        StratifiedSingle,
    ),
)

__all__ = ["PROCEDURES", "Procedure", "parse_procedure"]


@functools.cache
def parse_procedure(text: str) -> Procedure:
    """Build the procedure that a name describes: `federated`, `centralized`, `concat-5`."""
    return parse(text, PROCEDURES, "procedure")
