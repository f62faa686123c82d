"""Reading YAML strictly: safe types only, and no key twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from cohort.errors import UserError

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class StrictLoader(Loader):
    """Refuses a mapping that holds a key twice, where YAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is not a word (quote it)", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key '{key}' stands twice in one mapping", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> Any:
    """The content of a YAML file."""
    try:
        with open(path, encoding="utf-8") as file:
            return yaml.load(file, StrictLoader)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise UserError(f"{path}{line}: {getattr(error, 'problem', None) or error}") from None


def parse_override(text: str) -> tuple[str, Any]:
    """`key=value` as the command line gives it, the value read as YAML."""
    key, separator, value = text.partition("=")
    if not separator:
        raise UserError(f"--config {text}: must be KEY=VALUE")
    return key, yaml.load(value, StrictLoader)
