"""Compares each number of a table with the paper's value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cohort.metrics.names import METRICS
from cohort.metrics.paper import PaperValue
from cohort.metrics.paper_match import match_paper
from cohort.metrics.summary import label_columns
from cohort.tables.spec import Table

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
    found = match_paper(
        spec["paper_values"],
        table.paper,
        table.measured(),
        cells.to_dict("records"),
        labels,
        label_columns(cells),
        at=table.at,
    )
    places = {tuple(one.labels.values()): next(iter(one.values), None) for one in found}
    values = [places[place] for place in numbers[labels].itertuples(index=False, name=None)]
    judged = table.tolerance is not None and spec.get("scale", "full") == "full"
    numbers = numbers.assign(
        paper=[value.value if value else float("nan") for value in values],
        paper_sd=[value.sd if value and value.sd is not None else float("nan") for value in values],
        tolerance=table.tolerance if judged else float("nan"),
        **{
            word: [getattr(value, word) if value else "" for value in values]
            for word in PAPER_WORDS[1:]
        },
    )
    numbers = numbers.assign(difference=numbers["mean"] - numbers["paper"])
    records = [
        dict(zip(numbers.columns, row, strict=True)) for row in numbers.itertuples(index=False)
    ]
    numbers = numbers.assign(
        verdict=[verdict(record, value) for record, value in zip(records, values, strict=True)]
    )
    return numbers[
        [column for column in numbers.columns if column not in (*PAPER_NUMBERS, *PAPER_WORDS)]
        + PAPER_NUMBERS
        + PAPER_WORDS
    ]


def verdict(record: Mapping[str, Any], value: PaperValue | None) -> str:
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
