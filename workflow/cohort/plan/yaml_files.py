"""Read YAML strictly: plain types only, no key twice, nothing that grows without bound."""

from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from cohort.core.errors import UserError

MAX_VALUES = 200_000  # with those that aliases repeat: a few lines of aliases can mean billions
MAX_BITS = 63
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class StrictLoader(Loader):
    """A YAML loader that refuses a key that is not text, or that stands twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key, problem = self.construct_object(key_node, deep=True), ""
            if not isinstance(key, str):
                problem = f"key {key!r} is not text (quote it)"
            elif key in seen:
                problem = f"key '{key}' stands twice in one mapping"
            if problem:
                raise ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file. Raise UserError for a file that cannot be read as such."""
    try:
        with open(path, encoding="utf-8") as file:
            content = yaml.load(file, StrictLoader)
        _count_values(content, {})
        return content
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except RecursionError:
        raise UserError(f"{path}: is nested too deeply, or contains itself") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        position = f", line {mark.line + 1}" if mark is not None else ""
        raise UserError(f"{path}{position}: {getattr(error, 'problem', None) or error}") from None


def _count_values(value: Any, counts: dict[int, int]) -> int:
    """Count the values nested in a value, by means of the `counts` of the mappings and lists that
    were counted already, by id. Raise ValueError for too many, or too large a number."""
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ValueError("a whole number has more than 18 digits")
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in counts:
        parts = value.values() if isinstance(value, dict) else value
        counts[id(value)] = 1 + sum(_count_values(part, counts) for part in parts)
    if counts[id(value)] > MAX_VALUES:
        raise ValueError(f"more than {MAX_VALUES} values, aliases included")
    return counts[id(value)]


def parse_override(text: str) -> tuple[str, Any]:
    """Split `key=value` from the command line; the value is read as YAML."""
    key, separator, value = text.partition("=")
    if not separator:
        raise UserError(f"--config {text}: must be KEY=VALUE; put others before --config")
    try:
        return key, yaml.load(value, StrictLoader)
    except (yaml.YAMLError, ValueError) as error:
        problem = getattr(error, "problem", None) or error
        raise UserError(f"--config {text}: the value is not valid YAML ({problem})") from None
