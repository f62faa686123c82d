"""Validate config files by their JSON Schemas; each mistake becomes one sentence: the key, and what
jsonschema says of it."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from cohort.core.errors import UserError, errors_at, suggest
from cohort.core.shipped import CONFIG, shipped
from cohort.plan.schemas import derived_schemas, standard_cases
from cohort.plan.yaml_files import read_yaml

LONGEST = 200  # characters of a name, which becomes a part of a path, or of a quoted value


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Yield an error unless the whole value matches: JSON Schema allows a newline after `$`, and a
    name too long for a file's."""
    too_long = pattern.endswith("$") and isinstance(value, str) and len(value) > LONGEST
    if isinstance(value, str) and (too_long or "\n" in value or not re.search(pattern, value)):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _is_number(checker: Any, value: Any) -> bool:
    """Whether a value is a finite number: no bound in a schema refuses NaN."""
    return bool(Draft202012Validator.TYPE_CHECKER.is_type(value, "number")) and math.isfinite(value)


def _cases(validator: Any, cases: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Yield the errors of a mapping by the schema that its key picks, if the key picks one."""
    name = value.get(cases["key"]) if isinstance(value, dict) else None
    if isinstance(name, str) and name in cases["schemas"]:
        yield from validator.descend(value, cases["schemas"][name])


Strict = extend(
    Draft202012Validator,
    {"pattern": _pattern, "cases": _cases},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("number", _is_number),
)


class Validator:
    """Validates config files; `names` lists what they define and refer to, such as data sets."""

    def __init__(self, names: Mapping[str, list[str]]):
        derived = derived_schemas(names)
        self.derived = {f"cohort:{part}": schema for part, schema in derived.items()}
        self.registry: Registry[Any] = Registry().with_resources(
            (uri, DRAFT202012.create_resource(schema)) for uri, schema in self.derived.items()
        )

    def read(self, file: Path, schema: str) -> dict[str, Any]:
        """Read a YAML file and validate it by `{schema}.schema.yaml`."""
        content: dict[str, Any] = read_yaml(file)
        with errors_at(file):
            self.check(content, schema)
        return content

    def check(self, value: Any, schema: str) -> None:
        """Raise a one-sentence UserError where a file's content does not fit its schema."""
        self._check(value, _named_schema(schema))

    def check_part(self, value: Any, part: str) -> None:
        """Raise a UserError where a value does not fit the derived schema `cohort:{part}`."""
        self._check(value, {"$ref": f"cohort:{part}"})

    def _check(self, value: Any, schema: Mapping[str, Any]) -> None:
        error = best_match(Strict(schema, registry=self.registry).iter_errors(value))
        if error is not None:
            raise UserError(_sentence(error))

    def self_contained(self, schema: str) -> dict[str, Any]:
        """`{schema}.schema.yaml` with the derived schemas that it refers to among its `$defs`."""
        parts: dict[str, Any] = {}
        content: dict[str, Any] = self._localized(_named_schema(schema), parts)
        return content | {"$defs": content.get("$defs", {}) | parts}

    def _localized(self, schema: Any, parts: dict[str, Any]) -> Any:
        """The schema with `#/$defs/part` for each `cohort:part`; the parts are added to `parts`."""
        if isinstance(schema, list):
            return [self._localized(item, parts) for item in schema]
        if not isinstance(schema, dict):
            return schema
        uri = schema.get("$ref")
        if uri in self.derived:
            part = uri.partition(":")[2]
            if part not in parts:
                parts[part] = {}  # parts refer to each other
                parts[part] = self._localized(self.derived[uri], parts)
            schema = schema | {"$ref": f"#/$defs/{part}"}
        schema = standard_cases(schema)
        return {key: self._localized(value, parts) for key, value in schema.items()}


def _named_schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = read_yaml(shipped(CONFIG / "schemas" / f"{name}.schema.yaml"))
    return schema


def _sentence(error: ValidationError) -> str:
    """The key of a validation error and its message, with a near word for an unknown one and the
    schema's description for a value of the wrong form."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    key = "".join(steps)[: 2 * LONGEST].lstrip(".") or "the file"
    rule = str(error.validator)
    value: Any = error.instance
    schema: Any = error.schema
    if rule == "additionalProperties":
        allowed = schema.get("properties", {})
        unknown = next(name for name in value if name not in allowed)
        words = rf"\b{re.escape(unknown.replace('_', ' '))}\b"  # learning_rate is described by lr
        meant = [name for name in allowed if re.search(words, allowed[name].get("description", ""))]
        near = suggest(unknown[:LONGEST], allowed, next(iter(meant), ""))
        return f"{key} has an unknown key {_quoted(unknown)}{near}"
    if rule in ("enum", "const"):
        choices: Any = error.validator_value if rule == "enum" else [error.validator_value]
        near = suggest(str(value)[:LONGEST], choices)
        return f"{key} is {_quoted(value)}, which is not known{near}"
    message = error.message.replace(repr(value), _quoted(value))
    if rule == "type" and error.validator_value == "number" and isinstance(value, str):
        with contextlib.suppress(ValueError):
            message += f" (YAML reads {value} as text: write {float(value)!r})"
    elif rule in ("pattern", "type") and "description" in schema:
        message += f" ({schema['description']})"
    return f"{key}: {message}"


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
