"""What a partition scheme is, and how its name is read and printed."""

from __future__ import annotations

import dataclasses
import math
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cohort.components import Component
from cohort.errors import UserError, suggest


@dataclass(frozen=True, kw_only=True)
class Scheme(Component):
    """A rule that deals samples to clients. Its name in a config is its word, its values in order, then the options that differ
    from their defaults: `dir-0.1-minimum1`."""

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

    def check(self, classes: int, clients: int, samples: int) -> None:
        """Raise ValueError when no such partition can exist."""
        if clients > samples:
            raise ValueError(f"{samples} samples cannot be dealt to {clients} clients")

    def scaled(self, share: float) -> Scheme:
        """The scheme for a share of the samples: limits that count samples shrink with them."""
        return self

    def deal(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """For each client the indices of its samples."""
        raise NotImplementedError

    def borrow(self, parts: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
        """For each client further samples, which lie at another client too; none, unless a name declares an overlap."""
        return [np.empty(0, dtype=np.int64) for _ in parts]

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
    hints = typing.get_type_hints(cls)
    required = [field.name for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING]
    options = [field.name for field in dataclasses.fields(cls) if field.default is not dataclasses.MISSING]
    arguments: dict[str, float] = {}
    try:
        for name in required:
            arguments[name] = hints[name](values.pop(0))
        for value in values:
            match = re.fullmatch(r"([a-z]+)([0-9.]+)", value)
            if match is None or match[1] not in options:
                raise ValueError
            arguments[match[1]] = hints[match[1]](match[2])
        if not all(0 < value < math.inf for value in arguments.values()):
            raise ValueError
    except (ValueError, IndexError, TypeError):  # TypeError: a value that no text can mean, as the scheme under an overlap
        raise UserError(f"partition '{text}' is not of the form {cls.form()} with numbers above 0") from None
    scheme = cls(**arguments)
    if str(scheme) != text:
        raise UserError(f"partition '{text}' is written '{scheme}'")
    return scheme


def by_owner(samples: np.ndarray, owners: np.ndarray, clients: int) -> list[np.ndarray]:
    """For each client the samples that it owns, in their order: one sort, however many classes and clients there are."""
    order = np.argsort(owners, kind="stable")
    return np.split(samples[order], np.cumsum(np.bincount(owners, minlength=clients))[:-1])
