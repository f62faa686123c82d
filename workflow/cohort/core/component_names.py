"""Components whose name in a config holds their parameters: a word, then the values in order, then the options that differ from their
defaults, as in `dir-0.1-minimum1`. What a name means prints back as the same name."""

from __future__ import annotations

import dataclasses
import math
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from cohort.core.components import Component
from cohort.core.errors import UserError, suggest


@dataclass(frozen=True, kw_only=True)
class Named(Component):
    """A component that is written as a name."""

    @classmethod
    def form(cls) -> str:
        """How its names look: `dir-ALPHA[-minimumN]`."""
        words = [cls.name]
        for field in dataclasses.fields(cls):
            words.append(
                field.name.upper() if field.default is dataclasses.MISSING else f"[{field.name}N]"
            )
        return "-".join(words).replace("-[", "[-")

    def __str__(self) -> str:
        words = [self.name]
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.default is dataclasses.MISSING:
                words.append(f"{value:g}")
            elif value != field.default:
                words.append(f"{field.name}{value:g}")
        return "-".join(words)


LONGEST = 100  # characters of a name, which becomes a part of a path

N = TypeVar("N", bound=Named)


def parse(text: str, known: Mapping[str, type[N]], kind: str) -> N:
    """What a name of this kind means."""
    if len(text) > LONGEST:
        raise UserError(
            f"{kind} '{text[:LONGEST]}...' has {len(text)} characters, but may have {LONGEST} at most"
        )
    word, *values = text.split("-")
    if word not in known:
        raise UserError(
            f"{kind} '{text}' is not known{suggest(text, (cls.form() for cls in known.values()))}"
        )
    cls = known[word]
    try:
        found = cls(**_arguments(cls, values))
    except ValueError as error:
        raise UserError(f"{kind} '{text}' is not of the form {cls.form()}: {error}") from None
    if str(found) != text:
        raise UserError(f"{kind} '{text}' is written '{found}'")
    return found


def _arguments(cls: type[Named], values: list[str]) -> dict[str, Any]:
    fields = {field.name: field for field in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    required = [name for name, field in fields.items() if field.default is dataclasses.MISSING]
    if len(values) < len(required):
        raise ValueError(f"{required[len(values)].upper()} is missing")
    arguments = {
        name: _number(hints[name], fields[name], value)
        for name, value in zip(required, values, strict=False)
    }
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
        raise ValueError(
            f"{field.name} is '{text}', which is no {'whole ' if hint is int else ''}number"
        ) from None
    schema = field.metadata["schema"]
    least, above = (schema.get(key, -math.inf) for key in ("minimum", "exclusiveMinimum"))
    if not (least <= value < math.inf and above < value):
        raise ValueError(
            f"{field.name} is {text}, but must be {'at least' if least > above else 'above'} {max(least, above)}"
        )
    most, below = (schema.get(key, math.inf) for key in ("maximum", "exclusiveMaximum"))
    if not (value <= most and value < below):
        raise ValueError(
            f"{field.name} is {text}, but must be {'at most' if most < below else 'below'} {min(most, below)}"
        )
    return value
