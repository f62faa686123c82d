"""JSON Schemas of the config's parts, derived from the components themselves.

The schemas in config/schemas refer to them as `cohort:settings`, `cohort:selector` and so on, so a
new component or parameter needs no edit there. Their keyword `cases`, which is not in JSON Schema,
picks a mapping's schema by one of its keys (`standard_cases` writes it in JSON Schema).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cohort.cell.settings import Settings
from cohort.core.components import Component, schema_of
from cohort.data.augmentations import AUGMENTATIONS
from cohort.models import MODELS
from cohort.results.claims import CLAIMS
from cohort.results.figures import KINDS
from cohort.results.names import FREE
from cohort.results.tables.spec import Leaderboard, Table
from cohort.training.cell import PARTS

Schema = dict[str, Any]

SHARE = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
CHEAPER = {
    "rounds": SHARE,
    "samples": SHARE,
    "stretched": {"type": "boolean"},
    "seeds": {"type": "integer", "minimum": 1},
    "thin": {"type": "boolean"},
    "without": {"type": "array", "items": {"$ref": "cohort:match"}},
    "except": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "given": {"$ref": "cohort:match", "minProperties": 1},
                "rounds": SHARE,
                "samples": SHARE,
            },
            "required": ["given"],
            "additionalProperties": False,
        },
    },
}
NAME = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9][A-Za-z0-9 .=+()/_-]{0,39}$",
    "description": "a name of up to 40 letters, digits and . = + ( ) / _ -",
}
FRAME = {
    "experiment": {"type": "string"},
    "title": {"type": "string"},
    "caption": {"type": "string"},
}
"""What every figure and table may have, whatever its kind."""


def derived_schemas(names: Mapping[str, list[str]]) -> dict[str, Schema]:
    """The JSON Schemas that files refer to as `cohort:...`, by name. `names` lists the data sets,
    strategies, studies and scales."""
    words = {
        "model": list(MODELS),
        "augmentation": list(AUGMENTATIONS),
        **names,
    }
    settings = _settings_schema(words)
    labels = settings | dict.fromkeys(FREE, NAME)
    titles = {key: {"type": "object", "additionalProperties": NAME} for key in labels}
    return {
        "settings": _closed_mapping(settings),
        "axes": _closed_mapping({key: _list_of(schema) for key, schema in labels.items()}),
        "paired": _closed_mapping({key: _list_with_null(schema) for key, schema in labels.items()}),
        "match": _closed_mapping({key: _one_or_list(schema) for key, schema in labels.items()}),
        "cheaper": _closed_mapping(CHEAPER),
        "titles": _closed_mapping(titles),
        **{part: _component_schema(components, "name") for part, components in PARTS.items()},
        "figure": _component_schema(KINDS, "kind", FRAME),
        "table": _table_schema(),
        "claim": _component_schema(CLAIMS, "kind"),
        **{
            word: {"type": "string", "enum": words.get(word, [])}
            for word in ("dataset", "strategy", "study", "scale")
        },
        "added": {"type": "string", "enum": [f"+{name}" for name in words.get("strategy", [])]},
    }


def _settings_schema(words: Mapping[str, list[str]]) -> Schema:
    """The schema of a cell's settings, and of its strategy's parameters (`selector.buffer`).

    Parameters may have any value here: they are checked later, when the component is known.
    """
    settings: Schema = schema_of(Settings)["properties"]
    settings |= {
        key: settings[key] | {"enum": allowed} for key, allowed in words.items() if key in settings
    }
    for part, components in PARTS.items():
        for component in components.values():
            settings |= {f"{part}.{key}": {} for key in schema_of(component)["properties"]}
    return settings


def _list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema, "minItems": 1, "uniqueItems": True}


def _list_with_null(schema: Schema) -> Schema:
    return {"type": "array", "items": {"if": {"type": "null"}, "else": schema}, "minItems": 1}


def _one_or_list(schema: Schema) -> Schema:
    return {"if": {"type": "array"}, "then": _list_of(schema), "else": schema}


def _closed_mapping(properties: Mapping[str, Any]) -> Schema:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def _component_schema(
    components: Mapping[str, type[Component]], key: str, frame: Mapping[str, Any] | None = None
) -> Schema:
    """The schema of a mapping whose `key` names a component, and whose others are parameters."""
    schemas = {}
    for name, component in components.items():
        schema = schema_of(component)
        schema["properties"] = {key: {}} | dict(frame or {}) | schema["properties"]
        schemas[name] = schema
    return {
        "type": "object",
        "properties": {key: {"enum": list(components)}},
        "required": [key, *(["experiment"] if frame else [])],
        "cases": {"key": key, "schemas": schemas},
    }


def standard_cases(schema: Schema) -> Schema:
    """Replace the keyword `cases` by JSON Schema's own, which test one case after another."""
    if "cases" not in schema:
        return schema
    key, schemas = schema["cases"]["key"], schema["cases"]["schemas"]
    cases = [
        {"if": {"properties": {key: {"const": name}}, "required": [key]}, "then": case}
        for name, case in schemas.items()
    ]
    return {name: value for name, value in schema.items() if name != "cases"} | {"allOf": cases}


def _table_schema() -> Schema:
    schema = schema_of(Table)
    schema["properties"] = FRAME | schema["properties"]
    schema["required"] = ["experiment", *schema["required"]]
    return {
        "type": "object",
        "if": {"required": ["kind"]},
        "then": _component_schema({Leaderboard.name: Leaderboard}, "kind", FRAME),
        "else": schema,
    }
