"""The matrix of an experiment: multiply out its axes in the order in which they are written, match
cells against entries such as `{strategy: fedavg, J: [J4, J8]}`, and make it cheaper at a scale."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from cohort.core.errors import UserError
from cohort.results.names import FREE
from cohort.settings import DEFAULTS, EVALUATION_PLANS
from cohort.training.procedures import parse_procedure
from cohort.training.schedules import parse_schedule

Values = dict[str, Any]
Group = tuple[tuple[str, ...], list[tuple[Any, ...]]]
"""Axes that move together: their keys, and the combinations of values that they take."""
Scale = Mapping[str, Any]
Identity = frozenset[tuple[str, Any]]  # here, too, 1 and 1.0 are the same setting
Decided = dict[Identity, Scale | None]
"""The scale of each run of a study, None if it is left out."""


def combinations(experiment: Values) -> Iterator[Values]:
    """Yield the values of each cell on the experiment's axes: the product of the axes and the
    paired groups without what `exclude` matches, then the cells of `include`. Where a paired list
    holds null, a cell does not have that axis."""
    groups: list[Group] = [_axis(*item) for item in experiment["axes"].items()]
    groups += map(_paired_axes, experiment.get("paired", []))
    names = [key for keys, _ in groups for key in keys]
    for key in names:
        if names.count(key) > 1:
            raise UserError(f"'{key}' is an axis twice, in axes and in paired")
    cells, excluded = list(_product(groups)), experiment.get("exclude", [])
    for entry in excluded:
        check_matched(entry, cells, ".exclude: ")
    for values in cells:
        if not any(matches(values, entry) for entry in excluded):
            yield values
    for entry in map(as_lists, experiment.get("include", [])):
        others = [group for group in groups if entry.keys().isdisjoint(group[0])]
        for keys, _ in groups:
            if len(entry.keys() & {*keys}) not in (0, len(keys)):
                named = f"one of {', '.join(keys)} must give them all, for they are paired"
                raise UserError(f".include: an entry that gives {named}")
        yield from _product(others + [_axis(*item) for item in entry.items()])


def axis_values(experiment: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of each axis in the order in which the experiment first names them."""
    by_axis: dict[str, dict[Any, None]] = {}
    included = map(as_lists, experiment.get("include", []))
    for part in (experiment["axes"], *experiment.get("paired", []), *included):
        for key, values in part.items():
            by_axis.setdefault(key, {}).update(dict.fromkeys(values))
    for values in by_axis.values():
        values.pop(None, None)
    return {key: list(values) for key, values in by_axis.items()}


def as_lists(entry: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The entry with each single value as a list of one."""
    return {key: value if isinstance(value, list) else [value] for key, value in entry.items()}


def matches(cell: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Whether a cell has, for every key of the entry, its value or one of its list of values."""
    return all(
        cell.get(key) in allowed if isinstance(allowed, list) else cell.get(key) == allowed
        for key, allowed in entry.items()
    )


def check_matched(entry: Mapping[str, Any], cells: Iterable[Values], prefix: str = "") -> None:
    """Raise a UserError for an entry that matches no cell."""
    if not any(matches(cell, entry) for cell in cells):
        listed = ", ".join(f"{key} {values}" for key, values in as_lists(entry).items())
        raise UserError(f"{prefix}no cell has {listed}")


def _axis(key: str, values: Iterable[Any]) -> Group:
    return (key,), [(value,) for value in values]


def _paired_axes(paired: Mapping[str, list[Any]]) -> Group:
    if len({len(values) for values in paired.values()}) != 1:
        lengths = ", ".join(f"{key}: {len(values)}" for key, values in paired.items())
        raise UserError(f".paired: lists that move together must be equally long ({lengths})")
    return tuple(paired), list(zip(*paired.values(), strict=True))


def _product(groups: list[Group]) -> Iterator[Values]:
    names = [key for keys, _ in groups for key in keys]
    for rows in itertools.product(*(rows for _, rows in groups)):
        values = zip(names, itertools.chain.from_iterable(rows), strict=True)
        yield {key: value for key, value in values if value is not None}


def scaled_values(values: Values, scale: Scale) -> Values:
    """Scale a cell's samples and rounds, with the settings that depend on the number of rounds."""
    changed = dict(values)
    if "rounds" in scale:
        changed["rounds"] = rounds = max(1, round(values["rounds"] * scale["rounds"]))
        share = rounds / values["rounds"]
        if scale.get("stretched", True):
            changed["lr_decay"] = values["lr_decay"] ** (values["rounds"] / rounds)
        changed["schedule"] = _scaled_schedule(values["schedule"], share)
        changed["procedure"] = str(parse_procedure(values["procedure"]).scaled(share))
        for key in EVALUATION_PLANS:
            changed[key] = _scaled_interval(values[key], share)
    if "samples" in scale:
        changed["samples"] = values["samples"] * scale["samples"]
    return changed


def _scaled_schedule(name: str, share: float) -> str:
    """Scale a schedule, by name. A factor that this computes is rounded to six digits."""
    schedule = parse_schedule(name)
    scaled = schedule.scaled(share)
    rounded = {
        key: float(f"{value:g}")
        for key, value in vars(scaled).items()
        if isinstance(value, float) and value != getattr(schedule, key)
    }
    return str(replace(scaled, **rounded))


def _scaled_interval(interval: int | str, share: float) -> int | str:
    """Scale an evaluation interval so that the number of evaluations stays, at least one round
    apart; `last 10` stays ten rounds."""
    if not isinstance(interval, str):
        return max(1, round(interval * share)) if interval else 0
    numbers = r"(?<!last )\b[0-9]+"
    return re.sub(numbers, lambda number: str(_scaled_interval(int(number[0]), share)), interval)


def settings_of(values: Values) -> Values:
    """A cell's values with every default, without the labels that are not settings."""
    return DEFAULTS | {key: value for key, value in values.items() if key not in FREE}


def trained_cells(cells: list[Values], scale: Scale, decided: Decided) -> list[Values]:
    """The cells of an experiment that a scale trains, without those that its `without` or an
    earlier experiment leaves out. `decided` maps each run's identity to what the first experiment
    that has it does; this adds new ones."""
    identities = list(map(identity_of, cells))
    remaining = list(zip(identities, cells, strict=True))
    for entry in scale.get("without", []):
        check_matched(entry, cells)
        remaining = [pair for pair in remaining if not matches(pair[1], entry)]
    wanted = {identity for identity, _ in remaining}
    for identity in identities:
        decided.setdefault(identity, scale if identity in wanted else None)
    return [cell for identity, cell in remaining if decided[identity] is not None]


def identity_of(cell: Values) -> Identity:
    """All settings of a cell: two cells are the same run if these are equal."""
    return frozenset(settings_of(cell).items())


def with_seeds(cells: list[Values], count: int) -> list[Values]:
    """The cells with `count` seeds each: the first ones that they have, then the next numbers.
    Cells that differ in nothing but their seed stay together."""
    groups: dict[Identity, list[Values]] = {}
    for cell in cells:
        groups.setdefault(_without_seed(cell), []).append(cell)
    seeded = []
    for group in groups.values():
        seeds = list(dict.fromkeys(cell["seed"] for cell in group))
        others = (seed for seed in range(count + len(seeds)) if seed not in seeds)
        seeded += [group[0] | {"seed": seed} for seed in [*seeds, *others][:count]]
    return seeded


def thinned_cells(cells: list[Values], facets: Iterable[tuple[str, ...]]) -> list[Values]:
    """The first cells, with all their seeds, that show each strategy and each panel and hue of
    every figure once, though not each hue in each panel. `facets` are labels of panels or hues."""
    first: list[Values] = []
    for columns in dict.fromkeys([(), *facets, ("strategy",)]):
        seen = {tuple(map(cell.get, columns)) for cell in first}
        for cell in cells:
            if (labels := tuple(map(cell.get, columns))) not in seen:
                seen.add(labels)
                first.append(cell)
    wanted = set(map(_without_seed, first))
    return [cell for cell in cells if _without_seed(cell) in wanted]


def _without_seed(cell: Values) -> Identity:
    return frozenset((key, value) for key, value in cell.items() if key != "seed")
