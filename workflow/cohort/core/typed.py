"""Dataclasses from plain JSON: what `dataclasses.asdict` took apart is put together again."""

from __future__ import annotations

import types
import typing
from dataclasses import is_dataclass
from typing import Any


def from_json(hint: Any, value: Any) -> Any:
    """Build what a type hint describes from JSON values: a dataclass, or lists, dicts and tuples of
    them, each of which may be None. Other values stay as they are."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if value is None:
        return None
    if origin in (types.UnionType, typing.Union):
        (hint, *_) = (part for part in parts if part is not types.NoneType)
        return from_json(hint, value)
    if isinstance(hint, type) and is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return hint(**{key: from_json(hints[key], part) for key, part in value.items()})
    if origin is list:
        return [from_json(parts[0], part) for part in value]
    if origin is dict:
        return {key: from_json(parts[1], part) for key, part in value.items()}
    return tuple(value) if origin is tuple else value
