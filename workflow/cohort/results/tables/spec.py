"""What a study can set for a table: one of means, or a leaderboard."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cohort.core.components import parameter
from cohort.core.errors import UserError, suggest
from cohort.results.across import WITHOUT_HELP, check_settings, values_left_out
from cohort.results.comparison import Item, Measure
from cohort.results.names import BY_CLIENT, BY_ROUND, CLIENT, METRICS, check_better
from cohort.results.series import AT_HELP, AT_SCHEMA, WORDS, rounds_of

STRATEGY = "strategy"
LABELS: dict[str, Any] = {"items": {"type": "string"}, "minItems": 1, "uniqueItems": True}
PAIRS = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}
MINUS: dict[str, Any] = {"minProperties": 1, "maxProperties": 1, "additionalProperties": PAIRS}
ALSO_HELP = "further measures: a metric, or a metric and an at"


@dataclass(frozen=True, kw_only=True)
class Leaderboard(Item):
    """Strategies ranked by their mean rank over all settings of an experiment, with the interval of
    the rank, the interquartile mean, the probability to be ahead of FedAvg, and further means."""

    name: ClassVar[str] = "leaderboard"

    metric: str = parameter(enum=BY_ROUND, help="what strategies are ranked by")
    at: int | str = parameter("last", help=AT_HELP, **AT_SCHEMA)
    also: list[str] | None = parameter(None, items={"type": "string"}, help=ALSO_HELP)
    without: dict[str, Any] | None = parameter(None, minProperties=1, help=WITHOUT_HELP)

    def check(self) -> None:
        check_better(self.metric)
        check_measures(self.measures(), BY_ROUND)

    def check_cells(self, axes: Iterable[str], cells: Iterable[Mapping[str, Any]]) -> None:
        check_settings(STRATEGY, self.named(), axes, cells)

    def shown(self) -> tuple[str, ...]:
        return (STRATEGY,)

    def ignores(self, label: str) -> bool:
        return True

    def named(self) -> dict[str, list[str]]:
        return values_left_out(self.without)

    def measures(self) -> list[Measure]:
        left_out = self.named()
        return [
            Measure(metric=metric, at=at, labels=(STRATEGY,), over_settings=True, left_out=left_out)
            for metric, at in metrics_with_at(self.metric, self.at, self.also)
        ]


@dataclass(frozen=True, kw_only=True)
class Table(Item):
    """A table of means and deviations over seeds, by the labels of its rows and one of its columns.

    With `client` among the rows it shows metrics of clients, those of the first seed only: the
    client called 7 is another one for another seed.
    """

    name: ClassVar[str] = "table"

    metric: str = parameter(enum=[*BY_ROUND, *BY_CLIENT], help="what is tabulated")
    at: int | str = parameter("last", help=AT_HELP, **AT_SCHEMA)
    also: list[str] | None = parameter(
        None, items={"type": "string"}, help=f"{ALSO_HELP}; the measures are then the columns"
    )
    rows: list[str] = parameter(
        help="labels whose combinations are the rows; client for metrics of clients", **LABELS
    )
    columns: str = parameter("strategy", help="the label whose values are the columns")
    paper: str = parameter("", help="the item of resources/paper_values/{study}.csv beside ours")
    minus: dict[str, Any] | None = parameter(
        None, help="what to subtract by seed, as in {strategy: {loss: fedavg}}", **MINUS
    )
    joined: bool = parameter(
        False, help="all measures, or else all values of columns, in one cell between slashes"
    )

    def facets(self) -> tuple[str, ...]:
        """The labels of the rows and of the columns."""
        return tuple(dict.fromkeys([*self.rows, self.columns]))

    def shown(self) -> tuple[str, ...]:
        return tuple(label for label in self.facets() if label != CLIENT)

    def named(self) -> dict[str, list[str]]:
        return {label: [*bases, *bases.values()] for label, bases in (self.minus or {}).items()}

    def measures(self) -> list[Measure]:
        labels = self.facets()
        return [
            Measure(metric=metric, at=at, labels=labels, paper=self.paper, minus=self.minus)
            for metric, at in metrics_with_at(self.metric, self.at, self.also)
        ]

    def check(self) -> None:
        is_by_client = CLIENT in self.rows
        available = BY_CLIENT if is_by_client else BY_ROUND
        if self.metric not in available:
            wanted = "with" if self.metric in BY_CLIENT else "without"
            raise UserError(f"{self.metric} is for a table {wanted} {CLIENT} among its rows")
        if is_by_client and (self.paper or self.minus):
            raise UserError("a table by client can have neither paper nor minus")
        check_measures(self.measures(), available)
        if unknown := set(self.minus or {}) - set(self.facets()):
            raise UserError(
                f"minus names '{unknown.pop()}', which is neither in rows nor columns "
                f"({', '.join(self.facets())})"
            )


def metrics_with_at(metric: str, at: int | str, also: list[str] | None) -> list[tuple[str, Any]]:
    """Pairs of a metric, `metric` and those of `also`, and its own `at` or the first one's."""
    further = [text.partition(" ")[::2] for text in also or []]
    return [(metric, at), *((name, own_at or at) for name, own_at in further)]


def check_measures(measures: Sequence[Measure], available: Sequence[str]) -> None:
    """Raise UserError for a measure that stands twice, or whose metric is not available."""
    pairs = [(measure.metric, measure.at) for measure in measures]
    if len(set(pairs)) < len(pairs):
        raise UserError("also names a measure twice")
    for metric, at in pairs:
        if metric not in available:
            raise UserError(
                f"also names the metric '{metric}', which is not known{suggest(metric, available)}"
            )
        if at not in WORDS and not rounds_of(at):
            raise UserError(f"also: '{at}' is not a value of at{suggest(str(at), WORDS)}")
    for measure in measures:
        if measure.shown_metric not in METRICS:
            raise UserError(f"minus cannot subtract {measure.metric}, of which no gain is known")
