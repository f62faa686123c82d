"""Needs, the information beyond updates that selectors may require: one file each."""

from __future__ import annotations

from typing import Protocol

from cohort.core.components import Catalog, source_of
from cohort.core.errors import UserError, suggest
from cohort.needs.need import EvaluationContext, Need

NEEDS = Catalog("cohort.needs", Need)


class HasNeeds(Protocol):
    """A component that needs information: a selector."""

    @property
    def needs(self) -> frozenset[str]:
        """The names of its needs."""


def needs_of(selector: HasNeeds) -> list[type[Need]]:
    """The needs of a selector, in alphabetical order; UserError for an unknown name."""
    for name in sorted(selector.needs):
        if name not in NEEDS:
            raise UserError(
                f"{source_of(type(selector))}: {type(selector).__name__} needs '{name}', "
                f"which is not known{suggest(name, NEEDS)}"
            )
    return [NEEDS[name] for name in sorted(selector.needs)]


__all__ = ["NEEDS", "EvaluationContext", "Need", "needs_of"]
