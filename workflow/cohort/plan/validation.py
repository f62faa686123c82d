"""Config files against their JSON Schemas, each mistake in one sentence: file, key, the value found, what is allowed.

The schemas in config/schemas refer to parts named `cohort:...`, which are derived here from the components themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from cohort.cell.settings import Settings
from cohort.claims import CLAIMS
from cohort.core.components import Component, schema_of
from cohort.core.errors import UserError, suggest
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.parsers import PARSERS
from cohort.figures import KINDS
from cohort.metrics.names import SERIES
from cohort.models import MODELS
from cohort.plan.yaml_files import read_yaml
from cohort.selection import SELECTORS
from cohort.tables.sizes import Sizes
from cohort.tables.spec import Table
from cohort.training.objectives import OBJECTIVES
from cohort.training.servers import SERVERS

PARTS: dict[str, Mapping[str, type[Component]]] = {
    "selector": SELECTORS,
    "objective": OBJECTIVES,
    "server": SERVERS,
}
TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a word",
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


LONGEST = 200  # of a name, which becomes a part of a path


def _pattern(validator: Any, pattern: str, found: Any, schema: Any) -> Iterator[ValidationError]:
    """A pattern as one reads it: JSON Schema would let a name end in a new line, and be longer than a file's name may be."""
    too_long = pattern.endswith("$") and isinstance(found, str) and len(found) > LONGEST
    if isinstance(found, str) and (too_long or "\n" in found or not re.search(pattern, found)):
        yield ValidationError(f"{_shown(found)} does not match {pattern!r}")


Strict = extend(Draft202012Validator, {"pattern": _pattern})


class Validator:
    """Validates config files. `names` gives what other config files define: data sets and strategies."""

    def __init__(self, folder: Path, names: Mapping[str, list[str]] | None = None):
        self.folder = folder
        self.registry: Registry[Any] = Registry().with_resources(
            (f"cohort:{name}", DRAFT202012.create_resource(schema))
            for name, schema in _derived(names or {}).items()
        )

    def check(self, value: Any, schema: str, file: str | Path) -> None:
        """Raise a one-sentence UserError where `value`, read from `file`, does not fit `{schema}.schema.yaml`."""
        self._check(value, read_yaml(self.folder / f"{schema}.schema.yaml"), str(file))

    def check_part(self, spec: Any, part: str, where: str) -> None:
        """The same for one part of a strategy, after an axis has changed a parameter of it."""
        self._check(spec, {"$ref": f"cohort:{part}"}, where)

    def _check(self, value: Any, schema: Mapping[str, Any], where: str) -> None:
        error = best_match(Strict(schema, registry=self.registry).iter_errors(value))
        if error is not None:
            raise UserError(f"{where}: {explain(error)}")


def explain(error: ValidationError) -> str:
    """A validation error as one sentence."""
    while error.context:
        error = min(error.context, key=lambda inner: -len(inner.path))
    where = (
        "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path
        )[: 2 * LONGEST].lstrip(".")
        or "the file"
    )
    found: Any = error.instance
    rule = error.validator
    limit: Any = error.validator_value
    schema: Any = error.schema
    if rule == "additionalProperties":
        known = list(schema.get("properties", {}))
        key = next(key for key in found if key not in known)
        return f"{where} has an unknown key {_shown(key)}{suggest(key[:LONGEST], known)}"
    if rule == "required":
        key = next(key for key in limit if key not in found)
        return f"{where} lacks the key '{key}'"
    if rule == "not" and not limit:
        return f"{where} does not go together with what stands beside it"
    if rule in ("enum", "const"):
        return f"{where} is {_shown(found)}, which is not known{suggest(str(found)[:LONGEST], limit if rule == 'enum' else [limit])}"
    if rule == "type":
        expected = " or ".join(
            TYPES[name] for name in ([limit] if isinstance(limit, str) else limit)
        )
        return f"{where} is {_shown(found)}, but must be {expected}{_number_hint(found, limit)}"
    if rule in BOUNDS:
        return f"{where} is {_shown(found)}, but must be {BOUNDS[rule]} {limit!r}"
    if rule in ("minItems", "minProperties"):
        return f"{where} is empty, but must hold at least {limit}"
    if rule == "uniqueItems":
        return f"{where} holds a value twice: {_shown(found)}"
    if rule == "pattern":
        return f"{where} is {_shown(found)}, which does not look like {schema.get('description', limit)}"
    return f"{where}: {error.message[:LONGEST]}"


def _shown(value: Any) -> str:
    """A value as the config has it, or its beginning."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _number_hint(found: Any, limit: Any) -> str:
    if limit not in ("number", "integer") or not isinstance(found, str):
        return ""
    try:
        return f" (YAML reads {found} as text: write {float(found)!r})"
    except ValueError:
        return ""


def _derived(names: Mapping[str, list[str]]) -> dict[str, dict[str, Any]]:
    words = {
        "model": list(MODELS),
        "augmentation": list(AUGMENTATIONS),
        "dataset": list(PARSERS),
        **names,
    }
    settings = schema_of(Settings)["properties"]
    settings |= {
        key: settings[key] | {"enum": allowed} for key, allowed in words.items() if key in settings
    }
    for part, components in PARTS.items():
        settings |= {
            f"{part}.{key}": {}
            for component in components.values()
            for key in schema_of(component)["properties"]
        }
    labels = settings | {SERIES: NAME}
    lists = {
        key: {"type": "array", "items": schema, "minItems": 1, "uniqueItems": True}
        for key, schema in labels.items()
    }
    moving = {
        key: {"type": "array", "items": _or_null(schema), "minItems": 1}
        for key, schema in labels.items()
    }
    either = {
        key: {"if": {"type": "array"}, "then": lists[key], "else": schema}
        for key, schema in labels.items()
    }
    return (
        {
            "settings": _closed(settings),
            "axes": _closed(lists),
            "paired": _closed(moving),
            "match": _closed(either),
        }
        | {
            "cheaper": _closed(CHEAPER),
            "titles": _closed(
                {key: {"type": "object", "additionalProperties": NAME} for key in labels}
            ),
        }
        | {part: _named(components, "name") for part, components in PARTS.items()}
        | {
            "figure": _named(KINDS, "kind", FRAME),
            "table": _table(),
            "claim": _named(CLAIMS, "kind"),
        }
        | {
            word: {"type": "string", "enum": words.get(word, [])}
            for word in ("dataset", "strategy", "study", "scale")
        }
    )


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


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"if": {"type": "null"}, "else": schema}


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def _named(
    components: Mapping[str, type[Component]], key: str, frame: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A mapping whose `key` names a component and whose other keys are that component's parameters."""
    cases = []
    for name, component in components.items():
        schema = schema_of(component)
        schema["properties"] = {key: {}} | dict(frame or {}) | schema["properties"]
        cases.append(
            {"if": {"properties": {key: {"const": name}}, "required": [key]}, "then": schema}
        )
    needed = [key, *(["experiment"] if frame else [])]
    return {
        "type": "object",
        "properties": {key: {"enum": list(components)}},
        "required": needed,
        "allOf": cases,
    }


def _table() -> dict[str, Any]:
    schema = schema_of(Table)
    schema["properties"] = FRAME | schema["properties"]
    schema["required"] = ["experiment", *schema["required"]]
    return {
        "type": "object",
        "if": {"required": ["kind"]},
        "then": _named({Sizes.name: Sizes}, "kind", FRAME),
        "else": schema,
    }
