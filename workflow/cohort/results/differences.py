"""The differences between two sets of records: the same cells, trained twice or in two versions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cohort.cell.settings import DEFAULTS
from cohort.core.components import Component
from cohort.core.paths import CELL_FOLDERS
from cohort.records.record import PLAIN, Record
from cohort.results.intervals import Sample, holm_levels, welch_p
from cohort.training.cell import PARTS

LEAST_PAIRS = 3  # fewer give no verdict
FEW = "not enough runs"

Cell = tuple[str, int]
"""The settings of a cell as JSON, without the seed, and the seed."""


@dataclass
class Difference:
    """A metric of one cell in two sets of records, over the seeds that both have, or else over all.

    `sample` holds the differences seed by seed; None where no seed is common, and the means of
    independent runs are compared. A p-value up to `level` is significant.
    """

    name: str
    first: dict[int, float]
    second: dict[int, float]
    sample: Sample | None
    p_value: float
    level: float = 0.0

    @property
    def mean(self) -> float:
        """The mean of the second set less that of the first."""
        return float(np.mean(list(self.second.values())) - np.mean(list(self.first.values())))

    @property
    def verdict(self) -> str:
        """`significant`, among all differences that were tested, or not, or too few runs."""
        runs = [self.sample.n] if self.sample else [len(self.first), len(self.second)]
        if min(runs) < LEAST_PAIRS:
            return FEW
        return "significant" if self.p_value <= self.level else "not significant"


def cell_of(record: Record) -> Cell:
    """The settings (as JSON) and the seed of a record's cell. Settings younger than the record have
    their defaults, so two versions of a cell differ in their digests, but not in this."""
    settings = settings_with_defaults(record.header["settings"])
    seed = settings.pop("seed")
    return json.dumps(settings, sort_keys=True), seed


def settings_with_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A record's settings, with the defaults of settings and parameters that are younger than the
    record, and without parameters that no longer exist."""
    parts = {part: _complete(components, settings[part]) for part, components in PARTS.items()}
    return DEFAULTS | dict(settings) | parts


def _complete(components: Mapping[str, type[Component]], spec: dict[str, Any]) -> dict[str, Any]:
    if spec["name"] not in components:  # any more
        return spec
    return components[spec["name"]].from_spec(spec).spec()  # without parameters that are gone


def is_same(first: Record, second: Record) -> bool:
    """Whether two runs of a cell agree to the last bit, in all but provenance and measured
    times."""
    arrays, others = _untimed_arrays(first), _untimed_arrays(second)
    return (
        all(first.header[key] == second.header[key] for key in ("status", "weights_sha256"))
        and arrays.keys() == others.keys()
        and all(np.array_equal(arrays[name], others[name], equal_nan=True) for name in arrays)
    )


def _untimed_arrays(record: Record) -> dict[str, np.ndarray]:
    """All arrays of a record by path, without those of measured seconds."""
    arrays = record.history.arrays()
    for group in PLAIN:
        arrays |= {f"{group}/{name}": array for name, array in getattr(record, group).items()}
    return {path: array for path, array in arrays.items() if "/seconds" not in path}


def differences(
    first: Mapping[Cell, Record], second: Mapping[Cell, Record], metric: str
) -> list[Difference]:
    """Compare the last value of a metric in two sets of records: the differences of all settings
    for which some seed differs or none is common. Runs that diverged are left out. Holm's procedure
    takes all tests together."""
    differences, others = [], _by_settings_and_seed(second)
    for settings, ours in _by_settings_and_seed(first).items():
        theirs = others.get(settings, {})
        common = [seed for seed in ours if seed in theirs]
        if not common or any(not is_same(ours[seed], theirs[seed]) for seed in common):
            sides = _last_values(ours, metric), _last_values(theirs, metric)
            differences += _tested_difference(settings, *sides, is_paired=bool(common))
    enough = [difference for difference in differences if difference.verdict != FEW]
    levels = holm_levels([difference.p_value for difference in enough])
    for difference, level in zip(enough, levels, strict=True):
        difference.level = level
    names = _names([difference.name for difference in differences])
    for difference in differences:
        difference.name = names[difference.name]
    return differences


def _by_settings_and_seed(records: Mapping[Cell, Record]) -> dict[str, dict[int, Record]]:
    groups: dict[str, dict[int, Record]] = {}
    for (settings, seed), record in records.items():
        groups.setdefault(settings, {})[seed] = record
    return groups


def _last_values(records: Mapping[int, Record], metric: str) -> dict[int, float]:
    """The last value, by seed, of each run that did not diverge and has the metric."""
    values = {seed: record.history.last(metric) for seed, record in records.items()}
    return {
        seed: value
        for seed, value in values.items()
        if np.isfinite(value) and records[seed].header["status"] == "done"
    }


def _tested_difference(
    settings: str, first: dict[int, float], second: dict[int, float], *, is_paired: bool
) -> list[Difference]:
    """The tested difference between two sides' values, in a list; empty if a side has none."""
    if is_paired:
        first = {seed: value for seed, value in first.items() if seed in second}
        second = {seed: second[seed] for seed in first}
    if not first or not second:
        return []
    ours, theirs = Sample.of(list(first.values())), Sample.of(list(second.values()))
    sample = Sample.of([second[seed] - first[seed] for seed in first]) if is_paired else None
    p_value = sample.p_value() if sample else welch_p(ours, theirs)
    return [Difference(settings, first, second, sample, p_value)]


def _names(settings: Iterable[str]) -> dict[str, str]:
    """A short name for each of these settings: its folder, and the settings that differ from those
    of others in the same folder."""
    groups: dict[str, dict[str, list[str]]] = {}
    for text in settings:
        values = json.loads(text)
        folder = "/".join(map(values.__getitem__, CELL_FOLDERS))
        groups.setdefault(folder, {})[text] = [f"{key}={value}" for key, value in values.items()]
    names = {}
    for folder, group in groups.items():
        shared = set.intersection(*map(set, group.values()))
        for text, parts in group.items():
            names[text] = " ".join([folder, *(part for part in parts if part not in shared)])
    return names
