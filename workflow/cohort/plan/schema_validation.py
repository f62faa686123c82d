"""Validate config files by their JSON Schemas; each mistake becomes one sentence.

It names the file, the key, the value found and what is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from cohort.core.errors import UserError, suggest
from cohort.core.shipped import CONFIG, shipped
from cohort.plan.located import errors_at
from cohort.plan.schemas import derived_schemas, standard_cases
from cohort.plan.yaml_files import read_yaml

TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "empty",
}
BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
LONGEST = 200  # characters of a name, which becomes a part of a path


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Yield an error unless the whole value matches: JSON Schema allows a newline after `$`, and a
    name too long for a file's."""
    too_long = pattern.endswith("$") and isinstance(value, str) and len(value) > LONGEST
    if isinstance(value, str) and (too_long or "\n" in value or not re.search(pattern, value)):
        yield ValidationError(f"{_shown(value)} does not match {pattern!r}")


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

    def __init__(self, names: Mapping[str, list[str]] | None = None):
        derived = derived_schemas(names or {})
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
        self._check(value, named_schema(schema))

    def check_part(self, value: Any, part: str) -> None:
        """Raise a UserError where a value does not fit the derived schema `cohort:{part}`."""
        self._check(value, {"$ref": f"cohort:{part}"})

    def self_contained(self, schema: str) -> dict[str, Any]:
        """`{schema}.schema.yaml` with the derived schemas that it refers to among its `$defs`."""
        parts: dict[str, Any] = {}
        content: dict[str, Any] = self._localized(named_schema(schema), parts)
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

    def _check(self, value: Any, schema: Mapping[str, Any]) -> None:
        error = best_match(Strict(schema, registry=self.registry).iter_errors(value))
        if error is not None:
            raise UserError(explain_error(error))


def named_schema(name: str) -> dict[str, Any]:
    """Read the schema of a kind of config file, such as `study`."""
    schema: dict[str, Any] = read_yaml(shipped(CONFIG / "schemas" / f"{name}.schema.yaml"))
    return schema


def explain_error(error: ValidationError) -> str:
    """Turn a validation error into one sentence that begins with the key."""
    while error.context:
        error = min(error.context, key=lambda inner: -len(inner.path))
    rule = str(error.validator)
    explanation = EXPLANATIONS.get(rule)
    if rule in BOUNDS:
        sentence = (
            f" is {_shown(error.instance)}, but must be {BOUNDS[rule]} {error.validator_value!r}"
        )
    elif explanation is None or (rule == "not" and error.validator_value):
        sentence = f": {error.message[:LONGEST]}"
    else:
        sentence = explanation(error)
    return f"{_key(error)}{sentence}"


def _key(error: ValidationError) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    return "".join(steps)[: 2 * LONGEST].lstrip(".") or "the file"


def _unknown_key(error: Any) -> str:
    keys = list(error.schema.get("properties", {}))
    key = next(key for key in error.instance if key not in keys)
    return (
        f" has an unknown key {_shown(key)}{suggest(key[:LONGEST], keys, _described(key, error))}"
    )


def _described(key: str, error: Any) -> str:
    """The allowed key whose description has the words of an unknown one: lr for learning_rate."""
    words = re.escape(key.replace("_", " "))
    for name, schema in error.schema.get("properties", {}).items():
        if re.search(rf"\b{words}\b", schema.get("description", "")):
            return str(name)
    return ""


def _missing_key(error: Any) -> str:
    key = next(key for key in error.validator_value if key not in error.instance)
    return f" lacks the key '{key}'"


def _unknown_value(error: Any) -> str:
    allowed = error.validator_value if error.validator == "enum" else [error.validator_value]
    value = error.instance
    return f" is {_shown(value)}, which is not known{suggest(str(value)[:LONGEST], allowed)}"


def _wrong_type(error: Any) -> str:
    limit, value = error.validator_value, error.instance
    expected = " or ".join(TYPES[name] for name in ([limit] if isinstance(limit, str) else limit))
    about = error.schema.get("description", "") if limit == "string" else ""
    hint = f" ({about})" if about else _number_hint(value, limit)
    return f" is {_shown(value)}, but must be {expected}{hint}"


def _too_short(error: Any) -> str:
    length = f"holds {len(error.instance)}" if error.instance else "is empty"
    return f" {length}, but must hold at least {error.validator_value}"


def _repeated(error: Any) -> str:
    return f" holds a value twice: {_shown(error.instance)}"


def _wrong_form(error: Any) -> str:
    expected = error.schema.get("description", error.validator_value)
    is_name = "propertyNames" in error.schema_path
    verb = "has the name" if is_name else "is"
    return f" {verb} {_shown(error.instance)}, which does not look like {expected}"


def _not_allowed(error: Any) -> str:
    return " cannot be combined with the other keys there"


EXPLANATIONS: dict[str, Callable[[Any], str]] = {
    "additionalProperties": _unknown_key,
    "required": _missing_key,
    "not": _not_allowed,
    "enum": _unknown_value,
    "const": _unknown_value,
    "type": _wrong_type,
    "minItems": _too_short,
    "minProperties": _too_short,
    "uniqueItems": _repeated,
    "pattern": _wrong_form,
}
"""How to say what is wrong, by the rule of JSON Schema that was broken."""


def _shown(value: Any) -> str:
    """A value as text, as the config has it, or its beginning."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _number_hint(value: Any, limit: Any) -> str:
    if limit not in ("number", "integer") or not isinstance(value, str):
        return ""
    try:
        number = float(value) if limit == "number" else int(value)
    except ValueError:
        return ""
    if repr(number) == value:
        return f" (write {value} without quotes)"
    return f" (YAML reads {value} as text: write {number!r})" if math.isfinite(number) else ""
