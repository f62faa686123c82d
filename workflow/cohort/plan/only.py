"""Which cells a user asks for by their labels."""

from __future__ import annotations

from cohort.core.errors import UserError, suggest
from cohort.plan.study import Row


def read_only(only: str, rows: list[Row]) -> dict[str, set[str]]:
    """`strategy=fedavg|loss,seed=0` as the values that each label may have."""
    known: dict[str, dict[str, None]] = {}
    for row in rows:
        for key, value in row.labels.items():
            known.setdefault(key, {})[str(value)] = None
    wanted = {}
    for part in only.split(","):
        key, _, values = part.strip().partition("=")
        if key not in known:
            raise UserError(
                f"only '{only}': '{key}' is no label of these cells{suggest(key, known)}"
            )
        wanted[key] = set(values.split("|"))
        for value in sorted(wanted[key] - set(known[key])):
            raise UserError(
                f"only '{only}': no cell has {key} '{value}'{suggest(value, known[key])}"
            )
    return wanted
