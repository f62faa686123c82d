"""Reading YAML strictly: safe types only, and no key twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from cohort.core.errors import UserError

MOST = 200_000  # values in a file, with those that aliases repeat: a few lines of aliases can stand for billions
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class StrictLoader(Loader):
    """Refuses a mapping that holds a key twice, where YAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is not a word (quote it)", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key '{key}' stands twice in one mapping", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> Any:
    """The content of a YAML file."""
    try:
        with open(path, encoding="utf-8") as file:
            content = yaml.load(file, StrictLoader)
        _size(content, {})
        return content
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except RecursionError:
        raise UserError(f"{path}: is nested too deeply, or holds itself") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise UserError(f"{path}{line}: {getattr(error, 'problem', None) or error}") from None


def _size(value: Any, known: dict[int, int]) -> int:
    """How many values there are in one. Raise where there are too many, or a number is larger than a number of anything can be."""
    if isinstance(value, int) and value.bit_length() > 63:
        raise ValueError("a whole number has more than 18 digits")
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = 1 + sum(
            _size(part, known) for part in (value.values() if isinstance(value, dict) else value)
        )
    if known[id(value)] > MOST:
        raise ValueError(f"more than {MOST} values, aliases included")
    return known[id(value)]


def parse_override(text: str) -> tuple[str, Any]:
    """`key=value` as the command line gives it, the value read as YAML."""
    key, separator, value = text.partition("=")
    if not separator:
        raise UserError(f"--config {text}: must be KEY=VALUE")
    return key, yaml.load(value, StrictLoader)
