"""Components: the classes that a config refers to by name.

A component is a frozen dataclass. Its fields are its parameters, and the JSON Schema of its config
is derived from them, so adding a component means adding a class, and naming it in its catalog.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar

from cohort.core import user_files
from cohort.core.errors import UserError
from cohort.core.files import relative_path

NAME = r"[A-Za-z0-9][A-Za-z0-9.+_-]*"  # the form of a component's name
JSON_TYPES: dict[Any, str] = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "boolean",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True, kw_only=True)
class Component:
    """Base class of everything that a config refers to by name. Its fields are its parameters."""

    name: ClassVar[str]
    science: ClassVar[int] = 1
    """Version of the results. Bump it when they change: the cells that use the component, and only
    those, are then trained again."""

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """Build the component from those keys of a spec that are its parameters."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: spec[name] for name in names if name in spec})

    def spec(self, *, defaults: bool = True) -> dict[str, Any]:
        """The component's name and parameters, as a config gives them. Without `defaults`, leave
        out parameters that have their default."""
        values = {field: getattr(self, field.name) for field in dataclasses.fields(self)}
        kept = {
            field.name: value
            for field, value in values.items()
            if defaults or value != field.default
        }
        return {"name": self.name} | kept

    def version(self) -> int:
        """The science version with these parameters; to override for a change of results that
        concerns only some parameters."""
        return self.science


C = TypeVar("C", bound=Component)


def source_of(cls: type) -> str:
    """The file that defines a class, relative to the working directory if it lies there."""
    return relative_path(sys.modules[cls.__module__].__file__ or cls.__module__)


def parameter(default: Any = dataclasses.MISSING, *, help: str = "", **schema: Any) -> Any:
    """A dataclass field with a description and JSON Schema keywords (`minimum=0`, ...)."""
    return dataclasses.field(default=default, metadata={"schema": schema | {"description": help}})


class Catalog(MutableMapping[str, type[C]]):
    """The components of a kind by name, in alphabetical order: the built-in `classes`, and those
    that the user's modules define which extend `package`.

    The user's modules are imported when they are needed: first those that quote the component's
    name, then all.
    """

    def __init__(self, package: str, base: type[C], classes: Iterable[type[C]]):
        self.package, self._base = package, base
        self._by_name = {cls.name: cls for cls in classes}
        self._nameless: list[type[C]] = []  # of the user

    def __getitem__(self, name: str) -> type[C]:
        if name not in self._by_name:
            naming = user_files.modules_naming(name, self.package)
            self._import_user_modules(naming & self._user_modules)
        if name not in self._by_name:
            self._import_user_modules(self._user_modules)
        return self._by_name[name]

    def __setitem__(self, name: str, component: type[C]) -> None:
        self._by_name[name] = component

    def __delitem__(self, name: str) -> None:
        del self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        self._import_user_modules(self._user_modules)
        self._check_names()
        return iter(sorted(self._by_name))

    def __len__(self) -> int:
        return len(list(iter(self)))

    @functools.cached_property
    def _user_modules(self) -> set[str]:
        """The names of the user's modules that are not imported yet."""
        return set(user_files.module_names(self.package))

    def _import_user_modules(self, names: Iterable[str]) -> None:
        """Add the components that the user's modules of these names define. Raise UserError for a
        name that is taken or cannot be part of a path."""
        for module_name in sorted(names):
            self._user_modules.discard(module_name)
            module = user_files.import_module(self.package, module_name)
            for value in vars(module).values():
                if not (
                    isinstance(value, type)
                    and issubclass(value, self._base)
                    and value.__module__ == module.__name__
                ):
                    continue
                if "name" not in vars(value):
                    self._nameless.append(value)
                    continue
                if not re.fullmatch(NAME, value.name):
                    raise UserError(
                        f"{source_of(value)}: {value.__name__} has the name '{value.name}', which "
                        "is to be part of paths; name it with letters, digits and . + _ - only"
                    )
                first = self._by_name.setdefault(value.name, value)
                if first is not value:
                    raise UserError(
                        f"{module.__file__}: '{value.name}' is the name of {first.__module__}."
                        f"{first.__name__} already; give {value.__name__} another name"
                    )

    def _check_names(self) -> None:
        """Raise UserError for a user's class without a `name`, to which no config can refer, unless
        other classes are derived from it."""
        for cls in self._nameless:
            if not cls.__subclasses__():
                name = cls.__module__.rpartition(".")[2].replace("_", "-")
                raise UserError(
                    f"{source_of(cls)}: {cls.__name__} has no name by which a config can refer to "
                    f'it; give it one, such as name: ClassVar[str] = "{name}"'
                )


def schema_of(cls: type) -> dict[str, Any]:
    """The JSON Schema of a dataclass; properties that are not fields are not allowed."""
    hints = _hints(cls)
    properties, required = {}, []
    for field in dataclasses.fields(cls):
        properties[field.name] = _type_schema(hints[field.name]) | field.metadata.get("schema", {})
        if field.default is dataclasses.MISSING:
            required.append(field.name)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


@functools.cache
def _hints(cls: type) -> Mapping[str, Any]:
    """The types of a dataclass's fields, cached because every plan asks for them again."""
    return typing.get_type_hints(cls)


def canonical(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Drop values equal to their defaults and convert the others to their field's type, so that
    `1` and `1.0` are the same setting."""
    hints = _hints(cls)
    kept = {}
    for field in dataclasses.fields(cls):
        if field.name in values:
            value = cast_to_type(hints[field.name], values[field.name])
            if value != field.default:
                kept[field.name] = value
    return kept


def build(components: Mapping[str, type[C]], spec: Mapping[str, Any]) -> C:
    """Build the component that `{name: ..., parameter: value, ...}` describes."""
    values = {key: value for key, value in spec.items() if key != "name"}
    return components[spec["name"]](**values)


def cast_to_type(hint: Any, value: Any) -> Any:
    """Convert a number to a field's type, also in a list; other values are not changed."""
    if hint in (int, float):
        return hint(value)
    if hint is str:
        return value
    inner = [part for part in typing.get_args(hint) if part is not type(None)]
    if inner == [int, str]:
        return value if isinstance(value, str) else int(value)
    if typing.get_origin(hint) is list:
        return [cast_to_type(inner[0], item) for item in value]
    return cast_to_type(inner[0], value) if value is not None and len(inner) == 1 else value


def _type_schema(hint: Any) -> dict[str, Any]:
    if typing.get_origin(hint) is Literal:
        return {"enum": list(typing.get_args(hint))}
    if typing.get_origin(hint) is not None and type(None) in typing.get_args(hint):
        inner = next(part for part in typing.get_args(hint) if part is not type(None))
        schema = _type_schema(inner)
        if "type" in schema:
            return schema | {"type": [schema["type"], "null"]}
        return {"enum": [*schema["enum"], None]}
    if typing.get_origin(hint) is types.UnionType:
        return {"type": [JSON_TYPES[part] for part in typing.get_args(hint)]}
    return {"type": JSON_TYPES[typing.get_origin(hint) or hint]}
