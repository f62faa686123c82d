"""The JSON Schemas of config files, and their validation; each mistake becomes one sentence: the
key, and what jsonschema says of it.

The schemas in config/schemas refer to those of the config's parts, which are derived from the
components themselves, as `cohort:settings` and so on.
"""

import contextlib
import json
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

from cohort.core.components import Component, schema_of
from cohort.core.errors import UserError, errors_at, suggest
from cohort.core.shipped import CONFIG, shipped
from cohort.data.augmentations import AUGMENTATIONS
from cohort.models import MODELS
from cohort.plan.yaml_files import read_yaml
from cohort.results.claims.kinds import CLAIMS
from cohort.results.comparison import Leaderboard, Table
from cohort.results.figures import KINDS
from cohort.results.names import FREE
from cohort.settings import Settings
from cohort.training.cell import PARTS

Schema = dict[str, Any]

MAX_CHARS = 200  # of a name, which becomes a part of a path, or of a quoted value
NAME = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9][A-Za-z0-9 .=+()/_-]{0,39}$",
    "description": "a name of up to 40 letters, digits and . = + ( ) / _ -",
}
FRAME = {key: {"type": "string"} for key in ("experiment", "title", "caption")}
"""What every figure and table may have, whatever its kind."""


def derived_schemas(names: Mapping[str, list[str]]) -> dict[str, Schema]:
    """The JSON Schemas that files refer to as `cohort:...`, by name. `names` lists the data sets,
    strategies, studies and scales."""
    components = {"model": list(MODELS), "augmentation": list(AUGMENTATIONS)}
    settings = _settings_schema({**components, **names})
    labels = settings | dict.fromkeys(FREE, NAME)
    full = {"type": "array", "minItems": 1}
    is_list, is_null = {"type": "array"}, {"type": "null"}
    pairs = labels.items()
    lists = {key: full | {"items": schema, "uniqueItems": True} for key, schema in pairs}
    paired = {key: full | {"items": {"if": is_null, "else": schema}} for key, schema in pairs}
    match = {key: {"if": is_list, "then": lists[key], "else": schema} for key, schema in pairs}
    titles = {key: {"type": "object", "additionalProperties": NAME} for key in labels}
    words = {word: names.get(word, []) for word in ("dataset", "strategy", "study", "scale")}
    words["added"] = [f"+{name}" for name in words["strategy"]]
    return {
        "settings": _closed_mapping(settings),
        "axes": _closed_mapping(lists),
        "paired": _closed_mapping(paired),
        "match": _closed_mapping(match),
        "cheaper": _named_schema("cheaper"),
        "titles": _closed_mapping(titles),
        **{part: _component_schema(components, "name") for part, components in PARTS.items()},
        "figure": _component_schema(KINDS, "kind", FRAME),
        "table": _table_schema(),
        "claim": _component_schema(CLAIMS, "kind"),
        **{word: {"type": "string", "enum": allowed} for word, allowed in words.items()},
    }


def _settings_schema(words: Mapping[str, list[str]]) -> Schema:
    """The schema of a cell's settings, and of its strategy's parameters (`selector.buffer`).
    Parameters may have any single value here: they are checked later, by their component."""
    settings: Schema = schema_of(Settings)["properties"]
    single = {"type": ["number", "string", "boolean", "null"], "description": "several are an axis"}
    for key in settings.keys() & words.keys():
        settings[key] = settings[key] | {"enum": words[key]}
    for part, components in PARTS.items():
        for component in components.values():
            settings |= {f"{part}.{key}": single for key in schema_of(component)["properties"]}
    return settings


def _closed_mapping(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _component_schema(
    components: Mapping[str, type[Component]], key: str, frame: Mapping[str, Any] | None = None
) -> Schema:
    """The schema of a mapping whose `key` names a component, and whose others are parameters."""
    schemas = {name: schema_of(component) for name, component in components.items()}
    for schema in schemas.values():
        schema["properties"] = {key: {}} | dict(frame or {}) | schema["properties"]
    return {
        "type": "object",
        "properties": {key: {"enum": list(components)}},
        "required": [key, *(["experiment"] if frame else [])],
        "allOf": [
            {"if": {"properties": {key: {"const": name}}, "required": [key]}, "then": schema}
            for name, schema in schemas.items()
        ],
    }


def _table_schema() -> Schema:
    schema = schema_of(Table)
    schema["properties"] = FRAME | schema["properties"]
    schema["required"] = ["experiment", *schema["required"]]
    board = _component_schema({Leaderboard.name: Leaderboard}, "kind", FRAME)
    return {"type": "object", "if": {"required": ["kind"]}, "then": board, "else": schema}


def _named_schema(name: str) -> Schema:
    return read_yaml(shipped(CONFIG / "schemas" / f"{name}.schema.yaml"))


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Yield an error unless the whole value matches (`$` allows a newline) and is short enough."""
    too_long = pattern.endswith("$") and isinstance(value, str) and len(value) > MAX_CHARS
    if isinstance(value, str) and (too_long or "\n" in value or not re.search(pattern, value)):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _is_number(checker: Any, value: Any) -> bool:
    """Whether a value is a finite number: no bound in a schema refuses NaN."""
    return bool(Draft202012Validator.TYPE_CHECKER.is_type(value, "number")) and math.isfinite(value)


Strict = extend(
    Draft202012Validator,
    {"pattern": _pattern},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("number", _is_number),
)


class Validator:
    """Validates config files; `names` lists what they define and refer to, such as data sets."""

    def __init__(self, names: Mapping[str, list[str]]):
        self.derived = {f"cohort:{part}": schema for part, schema in derived_schemas(names).items()}
        schemas = self.derived.items()
        resources = ((uri, DRAFT202012.create_resource(schema)) for uri, schema in schemas)
        self.registry: Registry[Any] = Registry().with_resources(resources)

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

    def _check(self, value: Any, schema: Schema) -> None:
        errors = list(Strict(schema, registry=self.registry).iter_errors(value))
        unknown = [error for error in errors if error.validator == "additionalProperties"]
        error = best_match(unknown or errors)
        if error is not None:
            raise UserError(_sentence(error))

    def self_contained(self, schema: str) -> Schema:
        """`{schema}.schema.yaml` with the derived schemas that it refers to among its `$defs`."""
        content, parts = _named_schema(schema), dict[str, Schema]()
        while missing := {*re.findall(r'"cohort:(\w+)"', json.dumps([content, parts]))} - {*parts}:
            parts |= {part: self.derived[f"cohort:{part}"] for part in sorted(missing)}
        text = json.dumps(content | {"$defs": content.get("$defs", {}) | parts})
        return json.loads(text.replace('"cohort:', '"#/$defs/'))


def _sentence(error: ValidationError) -> str:
    """The key of a validation error and its message, with a suggestion for an unknown word and
    the schema's description for a value of the wrong form."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    key = "".join(steps)[: 2 * MAX_CHARS].lstrip(".") or "the file"
    rule = str(error.validator)
    value: Any = error.instance
    schema: Any = error.schema
    if rule == "additionalProperties":
        allowed = schema.get("properties", {})
        unknown = next(str(name) for name in value if name not in allowed)
        return f"{key} has an unknown key {_quoted(unknown)}{suggest(unknown[:MAX_CHARS], allowed)}"
    if rule in ("enum", "const"):
        choices: Any = error.validator_value if rule == "enum" else [error.validator_value]
        near = suggest(str(value)[:MAX_CHARS], choices)
        return f"{key} is {_quoted(value)}, which is not known{near}"
    if rule == "not" and error.validator_value == {"multipleOf": 2}:
        return f"{key} is {_quoted(value)}, but must be odd"
    message = error.message.replace(repr(value), _quoted(value))
    has_digits = isinstance(value, str) and re.search("[0-9]", value)
    if rule == "type" and error.validator_value == "number" and has_digits:
        with contextlib.suppress(ValueError):
            message += f" (YAML reads {value} as text: write {float(value)!r})"
    elif rule == "type" and error.validator_value == "array" and not isinstance(value, dict):
        message += f" (write [{value}])"
    elif rule in ("pattern", "type") and "description" in schema:
        message += f" ({schema['description']})"
    return f"{key}: {message}"


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}..."
