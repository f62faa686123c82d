"""The config's `only`: the part of the matrix to train, such as `strategy=fedavg|loss,seed=0`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cohort.core.errors import UserError, suggest
from cohort.plan.study import Row, Study

Wanted = Mapping[str, list[str]]


def parse_only(text: str) -> Wanted:
    """Parse `strategy=fedavg|loss,seed=0` into the values that each label may have; an empty text,
    which allows every cell, gives no labels."""
    wanted: dict[str, list[str]] = {}
    for part in text.split(",") if text else []:
        label, separator, values = part.strip().partition("=")
        if not separator:
            raise UserError(f"only '{text}': '{part}' must be LABEL=VALUE, e.g. strategy=fedavg")
        if label in wanted:
            raise UserError(f"only '{text}': '{label}' is there twice; write {label}=A|B")
        wanted[label] = values.split("|")
    return wanted


def is_wanted(row: Row, wanted: Wanted) -> bool:
    """Whether a cell has a wanted value of every label that `only` names."""
    return all(str(row.labels.get(label)) in values for label, values in wanted.items())


def check_only(wanted: Wanted, studies: Sequence[Study]) -> None:
    """Raise a UserError for a label or value that none of these studies has, or if no cell matches.

    Cells whose data are not available count: a note says why they are not trained.
    """
    rows = [row for study in studies for name in study.experiments.values() for row in name.rows]
    rows += [row for study in studies for here in study.skipped.values() for row, _ in here]
    if not rows:
        return
    names = " or ".join(study.name for study in studies)
    by_label: dict[str, dict[str, None]] = {}
    for row in rows:
        for label, value in row.labels.items():
            by_label.setdefault(label, {})[str(value)] = None
    for label, values in wanted.items():
        if label not in by_label:
            near = suggest(label, by_label)
            raise UserError(
                f"only {label}={'|'.join(values)}: {names} has no label '{label}'{near}"
            )
        for value in values:
            if value not in by_label[label]:
                near = suggest(value, by_label[label])
                raise UserError(f"only {label}={value} matches no cell of {names}{near}")
    if not any(is_wanted(row, wanted) for row in rows):
        condition = ",".join(f"{label}={'|'.join(values)}" for label, values in wanted.items())
        raise UserError(
            f"only {condition} matches no cell of {names}: each value occurs, but not all together"
        )
