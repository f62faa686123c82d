"""A study at a scale, and the part of it that `only` asks for: `strategy=fedavg|loss,seed=0`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cohort.core.errors import UserError, check_allowed
from cohort.plan.matrix import Values
from cohort.results.paper import paper_file


@dataclass(frozen=True, slots=True)
class Row:
    """A cell of an experiment: the labels that the study gives it, its digest, and the share of its
    full rounds that the scale trains."""

    labels: Values
    digest: str
    share: float = 1.0


@dataclass(frozen=True)
class Experiment:
    """The cells of an experiment at a scale, and the values of its axes at full scale, in order."""

    rows: list[Row]
    axes: dict[str, list[Any]]


@dataclass(frozen=True)
class Study:
    """A study at a scale: cells by experiment, and figures, tables and claims as validated. By
    experiment, `papers` names the study whose paper's values are shown beside it, the extended one
    if it extends one, and `skipped` the cells that cannot be run here, with reasons. `source` cites
    the paper, which proposes the strategies `methods`. A page begins with the `question`,
    `findings` (each a `text` and the values that it `rests_on`) and `key_figure`."""

    name: str
    title: str
    experiments: dict[str, Experiment]
    figures: dict[str, Values]
    tables: dict[str, Values]
    titles: dict[str, dict[str, str]]
    claims: dict[str, Values]
    papers: dict[str, str]
    description: str = ""
    source: dict[str, str] = field(default_factory=dict)
    question: str = ""
    findings: list[Values] = field(default_factory=list)
    key_figure: str = ""
    methods: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: dict[str, list[tuple[Row, str]]] = field(default_factory=dict)

    def strategies(self, experiments: Iterable[str]) -> list[str]:
        """The strategies of these experiments, each once."""
        axes = (self.experiments[experiment].axes for experiment in experiments)
        return list(dict.fromkeys(name for axis in axes for name in axis["strategy"]))

    def paper_file(self, spec: Values) -> Path | None:
        """The file of the paper's values for a figure or table; None if its spec names none."""
        return paper_file(self.papers[spec["experiment"]], spec)

    def drawn_items(self) -> dict[str, Values]:
        """The specs of the study's figures and tables by name."""
        return self.figures | self.tables

    def claimed(self) -> list[str]:
        """The names of the experiments that the study's claims compare."""
        named = claimed_experiments(self.claims.values())
        return [name for name in named if name in self.experiments]


def claimed_experiments(claims: Iterable[Values]) -> dict[str, None]:
    """The names of the experiments that resolved claims compare, each once, in order."""
    compared = [comparison for claim in claims for comparison in claim["comparisons"]]
    points = (point for comparison in compared for point in comparison["points"])
    return dict.fromkeys(point["experiment"] for point in points)


Wanted = Mapping[str, list[str]]


def parse_only(text: str) -> Wanted:
    """Parse `strategy=fedavg|loss,seed=0` into the values that each label may have."""
    wanted: dict[str, list[str]] = {}
    for part in text.split(",") if text else []:
        label, separator, values = part.strip().partition("=")
        if not separator:
            raise UserError(f"only '{text}': '{part}' must be LABEL=VALUE, e.g. strategy=fedavg")
        if label in wanted:
            raise UserError(f"only '{text}' names {label} twice; write {label}=VALUE|VALUE")
        wanted[label] = values.split("|")
    return wanted


def is_wanted(row: Row, wanted: Wanted) -> bool:
    """Whether a cell has a wanted value of every label that `only` names."""
    return all(str(row.labels.get(label)) in values for label, values in wanted.items())


def check_only(wanted: Wanted, studies: Sequence[Study]) -> None:
    """Raise a UserError for a label or value that none of these studies has, or if no cell matches.
    Cells that cannot run here count: a note says why they are skipped."""
    rows = [row for study in studies for part in study.experiments.values() for row in part.rows]
    rows += [row for study in studies for here in study.skipped.values() for row, _ in here]
    names = " or ".join(study.name for study in studies)
    labels = dict.fromkeys(label for row in rows for label in row.labels)
    if not rows:
        return
    for label, values in wanted.items():
        problem = f"only {label}={'|'.join(values)}: {names} has no label '{label}'"
        check_allowed(label, labels, problem)
        existing = dict.fromkeys(str(row.labels[label]) for row in rows if label in row.labels)
        for value in values:
            check_allowed(value, existing, f"only {label}={value} matches no cell of {names}")
    if not any(is_wanted(row, wanted) for row in rows):
        raise UserError(f"only: no cell of {names} has all of {', '.join(wanted)} as wanted")
