"""What there is of a cell, finished or not."""

from __future__ import annotations

from cohort.core.errors import UserError
from cohort.metrics.collect import EMPTY, Result, by_round, from_record
from cohort.training.job.checkpoint import load_history
from cohort.training.job.lease import CHECKPOINT, state_folder


def result_so_far(record: str) -> Result:
    """From its record, else from its checkpoint, else nothing."""
    try:
        return from_record(record)
    except UserError:
        history = load_history(state_folder(record) / CHECKPOINT)
        return (
            Result("missing", EMPTY.iloc[:0])
            if history is None
            else Result("unfinished", by_round(history))
        )
