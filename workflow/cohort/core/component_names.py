"""Components whose name in a config holds their parameters, such as `dir-0.1-minimum1`: one or more
words, the required values in order, then the options that differ from their defaults. `str` of a
component gives its name back."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from cohort.core.components import Component
from cohort.core.errors import UserError, closest_choice, suggest


@dataclass(frozen=True, kw_only=True)
class NameEncoded(Component):
    """A component that a config gives by a name alone, which holds its parameters: `dir-0.1`."""

    @classmethod
    def name_pattern(cls) -> str:
        """The pattern of this component's names for error messages, such as
        `dir-ALPHA[-minimumN]`."""
        text = cls.name
        for field in _fields(cls):
            text += f"-{field.name.upper()}" if _is_required(field) else f"[-{field.name}N]"
        return text

    def __str__(self) -> str:
        words = [self.name]
        for field in _fields(type(self)):
            value = getattr(self, field.name)
            if _is_required(field):
                words.append(value if isinstance(value, str) else number_text(value))
            elif value != field.default:
                words.append(f"{field.name}{number_text(value)}")
        return "-".join(words)


def number_text(value: float) -> str:
    """A number with all of its digits and without an exponent: 0.00001, and 2 for 2.0."""
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(int(value))
    return format(exact, "f").removesuffix(".0")


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING


def _fields(cls: type[NameEncoded]) -> list[dataclasses.Field[Any]]:
    """The dataclass fields of a component in the order of its name: the required ones first."""
    return sorted(dataclasses.fields(cls), key=_is_required, reverse=True)


LONGEST = 100  # characters of a name, which becomes part of a path

N = TypeVar("N", bound=NameEncoded)


def parse(text: str, catalog: Mapping[str, type[N]], kind: str) -> N:
    """Build the component that a name describes. Errors call the name a `kind`, as in
    `partition`."""
    if len(text) > LONGEST:
        raise UserError(
            f"{kind} '{text[:LONGEST]}...' has {len(text)} characters, "
            f"but may have at most {LONGEST}"
        )
    if exponent := re.search(r"[0-9.]+e-[0-9]+", text):
        raise UserError(
            f"{kind} '{text}' holds {exponent[0]}, but numbers in a name are written without an "
            "exponent, such as 0.001"
        )
    words = re.match(r"[a-z]+(-[a-z]+)*(?![^-])", text)
    word = words[0] if words and words[0] in catalog else text.partition("-")[0]
    if word not in catalog:
        forms = [cls.name_pattern() for cls in catalog.values()]
        raise UserError(
            f"{kind} '{text}' is not known{suggest(text, forms, _guess_meant(text, catalog))}"
        )
    cls = catalog[word]
    values = text.removeprefix(word).split("-")[1:]
    try:
        component = cls(**_arguments(cls, values))
    except ValueError as error:
        raise UserError(
            f"{kind} '{text}' is not of the form {cls.name_pattern()}: {error}"
        ) from None
    if str(component) != text:
        raise UserError(f"{kind} '{text}' is written '{component}'")
    return component


def _guess_meant(text: str, catalog: Mapping[str, type[N]]) -> str:
    """Guess the name that was meant by a wrong one: `dir-0.1` for `dir(0.1)`, the pattern of `dir`
    for `dirichlet`; empty if no name is like it."""
    plain = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")
    plain = re.sub(r"^([a-z-]*[a-z])(?=[0-9])", r"\1-", plain)  # dir0.1
    if plain != text:
        with contextlib.suppress(UserError):
            return str(parse(plain, catalog, ""))
    word = closest_choice(plain.partition("-")[0], catalog)
    return catalog[word].name_pattern() if word else ""


def _arguments(cls: type[NameEncoded], values: list[str]) -> dict[str, Any]:
    fields = {field.name: field for field in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    required = [name for name, field in fields.items() if _is_required(field)]
    if len(values) < len(required):
        raise ValueError(f"{required[len(values)].upper()} is missing")
    arguments = {
        name: _value(hints[name], fields[name], value)
        for name, value in zip(required, values, strict=False)
    }
    for value in values[len(required) :]:
        match = re.fullmatch(r"([a-z]+)([0-9.]+)", value)
        if match is None or match[1] not in fields or match[1] in required:
            raise ValueError(f"'{value}' has no place in it")
        arguments[match[1]] = _number(hints[match[1]], fields[match[1]], match[2])
    return arguments


def _value(hint: Any, field: dataclasses.Field[Any], text: str) -> Any:
    """The value of a required field: a number, or a word of letters, digits and underscores."""
    if hint is not str:
        return _number(hint, field, text)
    if not re.fullmatch("[a-z0-9_]+", text):
        raise ValueError(f"{field.name} is '{text}', which is not a word of a-z, 0-9 and _")
    return text


def _number(hint: Any, field: dataclasses.Field[Any], text: str) -> float:
    """The value of a field, checked against the bounds of its JSON Schema."""
    if hint not in (int, float):  # the scheme under an overlap, which no number can mean
        raise ValueError(f"'{text}' is not a {field.name}")
    try:
        value: float = hint(text)
    except ValueError:
        kind = "whole number" if hint is int else "number"
        raise ValueError(f"{field.name} is '{text}', which is not a {kind}") from None
    schema = field.metadata["schema"]
    least, above = (schema.get(key, -math.inf) for key in ("minimum", "exclusiveMinimum"))
    most, below = (schema.get(key, math.inf) for key in ("maximum", "exclusiveMaximum"))
    if not (least <= value < math.inf and above < value):
        bound = f"at least {least}" if least > above else f"above {above}"
        raise ValueError(f"{field.name} is {text}, but must be {bound}")
    if not (value <= most and value < below):
        bound = f"at most {most}" if most < below else f"below {below}"
        raise ValueError(f"{field.name} is {text}, but must be {bound}")
    return value
