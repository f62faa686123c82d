"""JSON files with a checksum of their content, which is verified when they are read.

The checksum is that of the values, not of the bytes: a file that is indented anew stays valid.
"""

import contextlib
import hashlib
import json
import math
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from cohort.core.errors import FileAccessError, UserError, explain_errors
from cohort.core.files import write_text

SEAL = "sha256"
DAMAGED = "its checksum does not fit: it was damaged after it was written"
RECREATE = "delete it and run snakemake again"


def to_sealed_json(content: Mapping[str, Any], indent: int | None = None) -> str:
    """JSON text of the content, in which null stands for NaN and infinities, and its checksum."""
    content = json.loads(json.dumps(content), parse_constant=lambda name: None)
    return json.dumps({**content, SEAL: _checksum(content)}, indent=indent) + "\n"


def write_sealed(path: str | Path, content: Mapping[str, Any], *, sync: bool = True) -> None:
    """Write the content and its checksum to a JSON file."""
    write_text(path, to_sealed_json(content), sync=sync)


def read_sealed(path: str | Path, kind: str, fix: str = RECREATE) -> dict[str, Any]:
    """Read a JSON file that `write_sealed` wrote. Raise UserError if it is missing or damaged:
    `kind` says what the file should hold, `fix` what to do."""
    with explain_unreadable(path, kind, fix):
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it is not a JSON object")
        seal = content.pop(SEAL, None)
        if seal is None:
            raise ValueError("it has no checksum")
        if seal != _checksum(content):
            raise ValueError(DAMAGED)
        return content


@contextlib.contextmanager
def explain_unreadable(path: str | Path, kind: str, fix: str = RECREATE) -> Iterator[None]:
    """Turn any error of this block, which reads a file of this kind, into a UserError."""
    try:
        with explain_errors(path):
            yield
    except FileNotFoundError:
        raise UserError(f"{path} is missing; run snakemake again") from None
    except FileAccessError:
        raise
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"{path} cannot be read as {kind} ({reason}); {fix}") from None


def _checksum(content: Mapping[str, Any]) -> str:
    """The SHA-256 of the content as JSON, in which the order of keys counts."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def from_json(hint: Any, value: Any) -> Any:
    """Build what a type hint describes from JSON, as `dataclasses.asdict` leaves it: a dataclass,
    lists, dicts or tuples of them, each of which may be None. Where a float is due, None is NaN."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if value is None:
        return math.nan if hint is float else None
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
