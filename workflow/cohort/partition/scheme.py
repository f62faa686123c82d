"""What a partition scheme is, and how its name is read and printed."""

from __future__ import annotations

import dataclasses
import math
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cohort.components import Component
from cohort.errors import UserError, suggest

NO_GROUPS = "it deals samples by their groups (domains, roles), and this data set has none"
Parts = list[np.ndarray]


@dataclass(frozen=True)
class Pool:
    """What is dealt: the label of each sample and, where the data set has groups (domains, roles), the number of its group."""

    labels: np.ndarray
    groups: np.ndarray | None = None

    def known_groups(self) -> np.ndarray:
        """The groups, for a scheme that cannot do without."""
        if self.groups is None:
            raise ValueError(NO_GROUPS)
        return self.groups


@dataclass(frozen=True, kw_only=True)
class Scheme(Component):
    """A rule that deals samples to clients. Its name in a config is its word, its values in order, then the options that differ
    from their defaults: `dir-0.1-minimum1`."""

    exact: ClassVar[bool] = True  # every sample is dealt to one client; a scheme that is not exact shares samples or leaves some out

    @classmethod
    def form(cls) -> str:
        """How the names of a scheme look: `dir-ALPHA[-minimumN]`."""
        words = [cls.name]
        for field in dataclasses.fields(cls):
            words.append(field.name.upper() if field.default is dataclasses.MISSING else f"[{field.name}N]")
        return "-".join(words).replace("-[", "[-")

    def versions(self) -> dict[str, int]:
        """The science versions that its numbers depend on."""
        return {f"partition:{self.name}": self.science}

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        """Raise ValueError when no such partition can exist; `groups` is how many the data set has, if it has any."""
        if clients > samples:
            raise ValueError(f"{samples} samples cannot be dealt to {clients} clients")

    def scaled(self, share: float) -> Scheme:
        """The scheme for a share of the samples: limits that count samples shrink with them."""
        return self

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        """For each client the indices of its samples in the pool."""
        raise NotImplementedError

    def borrow(self, parts: Parts, rng: np.random.Generator) -> tuple[Parts, Parts]:
        """For each client what it keeps of its part, and further samples, which lie at another client too: everything and none, unless a
        name declares an overlap."""
        return parts, [np.empty(0, dtype=np.int64) for _ in parts]

    def __str__(self) -> str:
        words = [self.name]
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.default is dataclasses.MISSING:
                words.append(f"{value:g}")
            elif value != field.default:
                words.append(f"{field.name}{value:g}")
        return "-".join(words)


def parse(text: str, schemes: Mapping[str, type[Scheme]]) -> Scheme:
    """Read a partition's name; what it means prints back as the same name."""
    word, *values = text.split("-")
    if word not in schemes:
        raise UserError(f"partition '{text}' has no known scheme{suggest(text, (cls.form() for cls in schemes.values()))}")
    cls = schemes[word]
    try:
        scheme = cls(**_arguments(cls, values))
    except ValueError as error:
        raise UserError(f"partition '{text}' is not of the form {cls.form()}: {error}") from None
    if str(scheme) != text:
        raise UserError(f"partition '{text}' is written '{scheme}'")
    return scheme


def _arguments(cls: type[Scheme], values: list[str]) -> dict[str, Any]:
    fields = {field.name: field for field in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    required = [name for name, field in fields.items() if field.default is dataclasses.MISSING]
    if len(values) < len(required):
        raise ValueError(f"{required[len(values)].upper()} is missing")
    arguments = {name: _number(hints[name], fields[name], value) for name, value in zip(required, values, strict=False)}
    for value in values[len(required) :]:
        match = re.fullmatch(r"([a-z]+)([0-9.]+)", value)
        if match is None or match[1] not in fields or match[1] in required:
            raise ValueError(f"'{value}' has no place in it")
        arguments[match[1]] = _number(hints[match[1]], fields[match[1]], match[2])
    return arguments


def _number(hint: Any, field: dataclasses.Field[Any], text: str) -> float:
    if hint not in (int, float):  # the scheme under an overlap, which no number can mean
        raise ValueError(f"'{text}' is no {field.name}")
    try:
        value: float = hint(text)
    except ValueError:
        raise ValueError(f"{field.name} is '{text}', which is no {'whole ' if hint is int else ''}number") from None
    least, above = (field.metadata["schema"].get(key, -math.inf) for key in ("minimum", "exclusiveMinimum"))
    if not (least <= value < math.inf and above < value):
        raise ValueError(f"{field.name} is {text}, but must be {'at least' if least > above else 'above'} {max(least, above)}")
    return value


def by_owner(samples: np.ndarray, owners: np.ndarray, clients: int) -> Parts:
    """For each client the samples that it owns, in their order: one sort, however many classes and clients there are."""
    order = np.argsort(owners, kind="stable")
    return np.split(samples[order], np.cumsum(np.bincount(owners, minlength=clients))[:-1])
