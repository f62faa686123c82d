"""What a study may say of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cohort.components import Component, parameter
from cohort.errors import UserError
from cohort.records.names import BY_ROUND
from cohort.records.summary import At


@dataclass(frozen=True, kw_only=True)
class Table(Component):
    """Mean and standard deviation over the seeds, for each value of the rows' labels (down) and of one label (across)."""

    name: ClassVar[str] = "table"

    metric: str = parameter(enum=BY_ROUND, help="what is tabulated")
    at: At = parameter("last", help="the last evaluation, the highest, the mean, or the mean of the last ten rounds")
    rows: list[str] = parameter(items={"type": "string"}, minItems=1, uniqueItems=True, help="the labels whose combinations are the rows")
    columns: str = parameter("strategy", help="the label whose values are the columns")
    paper: str = parameter(
        "", help="the table or figure of the paper whose values stand beside, as resources/paper_values/{study}.csv calls it"
    )
    tolerance: float | None = parameter(None, minimum=0, help="how far from the paper a result still agrees, in the unit as shown")

    def facets(self) -> tuple[str, ...]:
        """Every label that the table keeps apart."""
        return tuple(dict.fromkeys([*self.rows, self.columns]))

    def shown(self) -> tuple[str, ...]:
        """The same: a table averages over seeds alone."""
        return self.facets()

    def check(self) -> None:
        """Raise UserError when the fields do not fit together."""
        if self.tolerance is not None and not self.paper:
            raise UserError("tolerance needs paper, the item whose values it is held against")
