"""What a study's runs say about themselves: how many there are, what they cost, how they were made.

Runs that differ in their seed only are a group, which the numbers on the page lead to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cohort.results.files import read_experiment, restored_sentences
from cohort.results.names import Names
from cohort.results.series import NO_VALUE, STATUSES, RunCounts, label_text

PLACE = ("dataset", "model", "partition", "J", "strategy")
"""The settings that name a cell, as in the path of its record."""
Cell = dict[str, Any]


@dataclass(frozen=True)
class Coverage:
    """Some runs by status, the seconds that they took, those estimated for the rest, and sentences
    on the releases that some were restored from."""

    runs: RunCounts
    spent: float
    to_go: float
    restored: list[str]


@dataclass(frozen=True)
class Group:
    """Finished runs that differ in their seed only; `own` are the settings, besides those in its
    name, that not every run of the study has."""

    name: str
    own: dict[str, str]
    runs: list[Cell]


class StudyRuns:
    """The runs of a study's experiments, each once."""

    def __init__(self, experiments: Mapping[str, Mapping[str, Any]], names: Names):
        self._names = names
        self.experiments: dict[str, list[Cell]] = {}
        self.cells: dict[str, Cell] = {}
        self._estimates: dict[str, float] = {}
        for name, spec in experiments.items():
            cells = read_experiment(spec["runs"])["cells"]
            self.experiments[name] = [cell | {"labels": texts(cell["labels"])} for cell in cells]
            self.cells |= {cell["digest"]: cell for cell in cells}
            self._estimates |= spec["seconds"]
        self._anchors: dict[Any, dict[tuple[str, ...], str]] = {}

    def coverage(self, *experiments: str) -> Coverage:
        """The coverage of these experiments together; of all if none is named."""
        names = experiments or tuple(self.experiments)
        cells = {cell["digest"]: cell for name in names for cell in self.experiments[name]}
        counts = Counter(cell["status"] for cell in cells.values())
        runs = RunCounts(len(cells), *(counts[status] for status in STATUSES))
        waiting = [key for key, cell in cells.items() if cell["status"] in STATUSES[2:]]
        spent = sum(cell.get("seconds", 0.0) for cell in cells.values())
        to_go = sum(self._estimates.get(digest, 0.0) for digest in waiting)
        return Coverage(runs, spent, to_go, restored_sentences(cells.values()))

    def finished(self) -> list[Cell]:
        """The cells that have a record."""
        return [cell for cell in self.cells.values() if "settings" in cell]

    def anchor(self, experiment: str, labels: Mapping[str, str]) -> str:
        """The page anchor of the group with these label values; empty if none of its runs is
        done."""
        cells = self.experiments.get(experiment, [])
        names = tuple(name for name in labels if cells and name in cells[0]["labels"])
        if (experiment, names) not in self._anchors:
            anchors = self._anchors[experiment, names] = {}
            for cell in cells:
                key = tuple(cell["labels"].get(name, NO_VALUE) for name in names)
                if cell["digest"] in self._group_of:
                    anchors.setdefault(key, self._group_of[cell["digest"]])
        return self._anchors[experiment, names].get(tuple(labels[name] for name in names), "")

    @cached_property
    def _group_of(self) -> dict[str, str]:
        """The first digest of each run's group."""
        return {run["digest"]: it.runs[0]["digest"] for it in self.groups for run in it.runs}

    @cached_property
    def common(self) -> dict[str, str]:
        """The settings that all finished runs have, as text."""
        first, *others = [texts(cell["settings"]) for cell in self.finished()] or [{}]
        shared = set(first.items()).intersection(*(settings.items() for settings in others))
        return {key: value for key, value in first.items() if (key, value) in shared}

    @cached_property
    def groups(self) -> list[Group]:
        """The groups of finished runs, in the order of the study, those of one name together."""
        by_settings: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
        for cell in self.finished():
            settings = texts(cell["settings"]) | {"seed": ""}
            by_settings.setdefault(tuple(sorted(settings.items())), []).append(cell)
        groups: dict[str, list[Group]] = {}
        for items, cells in by_settings.items():
            settings, shared = dict(items), {*PLACE, *self.common}
            name = " · ".join(self._names.value(key, settings[key]) for key in PLACE)
            own = {key: value for key, value in items if value and key not in shared}
            runs = sorted(cells, key=lambda cell: cell["settings"]["seed"])
            groups.setdefault(name, []).append(Group(name, own, runs))
        return [group for same in groups.values() for group in same]


def texts(labels: Mapping[str, Any]) -> dict[str, str]:
    """Labels or settings as text, with nested ones as `selector.buffer`."""
    flat: dict[str, str] = {}
    for name, value in labels.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": text for key, text in texts(value).items()}
        else:
            flat[name] = label_text(value)
    return flat
