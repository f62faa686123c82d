"""Compares each number of a table with the paper's value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cohort.results.names import METRICS
from cohort.results.paper import PaperValue
from cohort.results.paper_match import match_paper
from cohort.results.series import label_columns
from cohort.results.tables.spec import Table

if TYPE_CHECKING:
    from pandas import DataFrame

PAPER_NUMBERS = ["paper", "paper_sd", "difference", "tolerance"]
PAPER_WORDS = ["verdict", "item", "source", "doubtful"]
AGREES, DIFFERS, NOT_ENOUGH, NO_RESULT, DIVERGED, NO_PAPER = (
    "agrees",
    "differs",
    "not enough runs",
    "no result",
    "diverged",
    "no paper value",
)


def compare(
    numbers: DataFrame, table: Table, spec: Mapping[str, Any], cells: DataFrame
) -> DataFrame:
    """Add the paper's value, the difference and the verdict to the numbers of a table.

    `cells` are all planned cells behind the numbers. There are verdicts at full scale only.
    """
    labels = list(table.facets())
    matches = match_paper(
        spec["paper_values"],
        table.paper,
        table.measured(),
        cells.to_dict("records"),
        labels,
        label_columns(cells),
        at=str(table.at),
    )
    found = {tuple(match.labels.values()): next(iter(match.values), None) for match in matches}
    values = [found[key] for key in numbers[labels].itertuples(index=False, name=None)]
    judged = table.tolerance is not None and spec.get("scale", "full") == "full"
    numbers = numbers.assign(
        paper=_column(values, "value", float("nan")),
        paper_sd=_column(values, "sd", float("nan")),
        tolerance=table.tolerance if judged else float("nan"),
        **{word: _column(values, word, "") for word in PAPER_WORDS[1:]},
    )
    numbers = numbers.assign(difference=numbers["mean"] - numbers["paper"])
    records = numbers.to_dict("records")
    verdicts = [verdict(record, value) for record, value in zip(records, values, strict=True)]
    others = [name for name in numbers.columns if name not in (*PAPER_NUMBERS, *PAPER_WORDS)]
    return numbers.assign(verdict=verdicts)[others + PAPER_NUMBERS + PAPER_WORDS]


def _column(values: list[PaperValue | None], field: str, missing: Any) -> list[Any]:
    """A field of each value, `missing` where the value or the field is None."""
    found = (getattr(value, field, None) for value in values)
    return [missing if one is None else one for one in found]


def verdict(record: Mapping[Any, Any], value: PaperValue | None) -> str:
    """Whether a result agrees with the paper's value; an empty text if there is no tolerance.

    A diverged run gives no verdict on the value, whatever it measured before.
    """
    if record["tolerance"] != record["tolerance"]:
        return ""
    if value is None:
        return NO_PAPER
    if record["diverged"]:
        return DIVERGED
    if not record["n"]:
        return NO_RESULT
    if record["n"] < record["planned"]:
        return NOT_ENOUGH
    apart = abs(record["difference"]) * METRICS[record["metric"]].scale
    # Rounded, so that 46.61 - 45.11 is 1.5 and not a little more.
    return AGREES if round(apart, 9) <= record["tolerance"] else DIFFERS
