"""Components: the classes that a config refers to by name.

A component is a frozen dataclass. Its fields are its parameters, and the JSON Schema of its config
is derived from them, so adding a component means adding a class, and naming it in its catalog.
"""

import contextlib
import dataclasses
import functools
import operator
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from cohort.core import lazy, user_files
from cohort.core.errors import UserError, suggest

jsonschema = lazy("jsonschema")
JSON_TYPES: dict[Any, str] = {
    **{int: "integer", float: "number", str: "string", bool: "boolean"},
    **{list: "array", dict: "object", types.NoneType: "null"},
}
SHARE: dict[str, Any] = {"minimum": 0, "maximum": 1}  # keywords of a parameter from 0 to 1
VALUES: dict[Any, tuple[str, str]] = {
    int: ("[0-9]{1,18}", "a whole number"),
    float: (r"[0-9]+\.?[0-9]*|\.[0-9]+", "a number"),
    str: ("[a-z0-9_]+", "a word of a-z, 0-9 and _"),
}
"""How a parameter's value is written in a component's name, by its type: as a pattern, in words."""
UNWRITTEN = ("(?!)", "given in another way")
BOUNDS = {
    "minimum": (operator.ge, "at least"),
    "exclusiveMinimum": (operator.gt, "above"),
    "maximum": (operator.le, "at most"),
    "exclusiveMaximum": (operator.lt, "below"),
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
        """Its name and parameters as in a config; those at their default only with `defaults`."""
        values = {"name": self.name}
        for field in dataclasses.fields(self):
            if defaults or getattr(self, field.name) != field.default:
                values[field.name] = getattr(self, field.name)
        return values

    def version(self) -> int:
        """The science version; override it if results change for some parameters only."""
        return self.science


C = TypeVar("C", bound=Component)


def parameter(default: Any = dataclasses.MISSING, *, help: str = "", **schema: Any) -> Any:
    """A dataclass field with a description and JSON Schema keywords (`minimum=0`, ...)."""
    return dataclasses.field(default=default, metadata={"schema": schema | {"description": help}})


class Catalog(Mapping[str, type[C]]):
    """The components of a kind by name, in alphabetical order: the built-in `classes`, and those in
    the user's modules that extend `package`. These are imported lazily: a lookup first imports
    modules that quote the name, then all. `by_name` holds those that are imported."""

    def __init__(self, package: str, base: type[C], classes: Iterable[type[C]]):
        self.package, self._base = package, base
        self.by_name = {cls.name: cls for cls in classes}

    @functools.cached_property
    def _user_modules(self) -> dict[str, Path]:
        """The files of the user's modules that are not imported yet, by the module's name."""
        return user_files.module_files(self.package)

    def __getitem__(self, name: str) -> type[C]:
        if name not in self.by_name:
            quoted = re.compile(f"""["']{re.escape(name)}["']""")
            texts = {key: f.read_text("utf-8", "replace") for key, f in self._user_modules.items()}
            self._import_user_modules([key for key, text in texts.items() if quoted.search(text)])
        if name not in self.by_name:
            self._import_user_modules(self._user_modules)
        return self.by_name[name]

    def __iter__(self) -> Iterator[str]:
        self._import_user_modules(self._user_modules)
        return iter(sorted(self.by_name))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _import_user_modules(self, names: Iterable[str]) -> None:
        """Add the components of these modules. Raise UserError for a name that is taken."""
        for module_name in sorted(names):
            del self._user_modules[module_name]
            module = user_files.import_module(self.package, module_name)
            classes = [cls for cls in vars(module).values() if isinstance(cls, type)]
            own = [cls for cls in classes if cls.__module__ == module.__name__]
            components = [cls for cls in own if issubclass(cls, self._base)]
            named = [cls for cls in components if "name" in vars(cls)]
            if len(components) > len(named) == 0:
                raise UserError(f"{module.__file__}: {components[-1].__name__} needs a name")
            for cls in named:
                _check_class(cls, f"{module.__file__}: {cls.__name__}")
                first = self.by_name.setdefault(cls.name, cls)
                if first is not cls:
                    taken = f"'{cls.name}' is the name of {first.__module__}.{first.__name__}"
                    raise UserError(f"{module.__file__}: {taken} already; rename {cls.__name__}")


def _check_class(cls: type[Component], where: str) -> None:
    """Raise UserError for a component of the user's that no config can give."""
    if methods := sorted(getattr(cls, "__abstractmethods__", ())):
        raise UserError(f"{where} lacks the method {methods[0]}")
    try:
        properties = schema_of(cls)["properties"]
    except (KeyError, NameError) as error:
        raise UserError(f"{where} has a parameter of a type that no config has: {error}") from None
    for field in dataclasses.fields(cls):
        validator = jsonschema.Draft202012Validator(properties[field.name])
        if unknown := properties[field.name].keys() - {*validator.VALIDATORS, "description"}:
            raise UserError(f"{where}.{field.name}: '{min(unknown)}' is no keyword of JSON Schema")
        errors = validator.iter_errors(field.default)
        is_given = field.default not in (None, dataclasses.MISSING)
        if is_given and (problem := next(errors, None)):
            raise UserError(f"{where}: the default of {field.name}: {problem.message}")


@functools.cache
def _hints(cls: type) -> Mapping[str, Any]:
    """The types of a dataclass's fields, cached because every plan asks for them again."""
    return typing.get_type_hints(cls)


def schema_of(cls: type) -> dict[str, Any]:
    """The JSON Schema of a dataclass; properties that are not fields are not allowed."""
    hints, fields = _hints(cls), dataclasses.fields(cls)
    return {
        "type": "object",
        "properties": {
            field.name: _type_schema(hints[field.name]) | field.metadata.get("schema", {})
            for field in fields
        },
        "required": [field.name for field in fields if field.default is dataclasses.MISSING],
        "additionalProperties": False,
    }


def _type_schema(hint: Any) -> dict[str, Any]:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return {"enum": list(parts)}
    if origin not in (types.UnionType, typing.Union):
        return {"type": JSON_TYPES[origin or hint]}
    if typing.get_origin(parts[0]) is Literal:
        return {"enum": [*typing.get_args(parts[0]), None]}
    return {"type": [JSON_TYPES[typing.get_origin(part) or part] for part in parts]}


def canonical(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values to their field's type, so that 1 and 1.0 are the same; drop the defaults."""
    hints = _hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls) if field.name in values}
    cast = {name: cast_to_type(hints[name], values[name]) for name in fields}
    return {name: value for name, value in cast.items() if value != fields[name].default}


def cast_to_type(hint: Any, value: Any) -> Any:
    """Convert a number to a field's type, also in a list; other values are not changed."""
    if hint in (int, float):
        return hint(value)
    inner = [part for part in typing.get_args(hint) if part is not types.NoneType]
    if inner == [int, str]:
        return value if isinstance(value, str) else int(value)
    if typing.get_origin(hint) is list:
        return [cast_to_type(inner[0], item) for item in value]
    return cast_to_type(inner[0], value) if value is not None and len(inner) == 1 else value


class NameEncoded(Component):
    """A component that a config names by a text with its parameters, as `str` returns it: its word,
    the required values in order, then options not at their default (`dir-0.1-minimum1`)."""

    @classmethod
    def name_pattern(cls) -> str:
        """The pattern of this component's names in errors, such as `dir-ALPHA[-minimumN]`."""
        options = [field for field in dataclasses.fields(cls) if field not in _required(cls)]
        words = [cls.name, *(field.name.upper() for field in _required(cls))]
        return "-".join(words) + "".join(f"[-{field.name}N]" for field in options)

    def __str__(self) -> str:
        values = {field: getattr(self, field.name) for field in dataclasses.fields(self)}
        required = [_value_text(values.pop(field)) for field in _required(type(self))]
        others = ((field, value) for field, value in values.items() if value != field.default)
        options = [f"{field.name}{_value_text(value)}" for field, value in others]
        return "-".join([self.name, *required, *options])


def _required(cls: type[NameEncoded]) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING]


def _value_text(value: Any) -> str:
    """A word, or a number with all digits and no exponent: 0.00001, and 2 for 2.0."""
    return value if isinstance(value, str) else format(Decimal(str(value)), "f").removesuffix(".0")


N = TypeVar("N", bound=NameEncoded)


def parse(text: str, catalog: Mapping[str, type[N]], kind: str) -> N:
    """Build the component that a name describes. Errors call it a `kind`, such as `partition`."""
    words = re.match(r"[a-z]+(-[a-z]+)*(?![^-])", text)
    word = words[0] if words and words[0] in catalog else text.partition("-")[0]
    if word not in catalog:
        forms = [cls.name_pattern() for cls in catalog.values()]
        raise UserError(f"{kind} '{text}' is not known{suggest(text, forms)}")
    cls = catalog[word]
    problem = f"{kind} '{text}' is not of the form {cls.name_pattern()}"
    required, hints, pattern = _required(cls), typing.get_type_hints(cls), re.escape(word)
    fields = sorted(dataclasses.fields(cls), key=lambda field: field not in required)
    written = {field.name: VALUES.get(hints[field.name], UNWRITTEN) for field in fields}
    for field in fields:
        value = f"(?P<{field.name}>{written[field.name][0]})"
        pattern += f"-{value}" if field in required else f"(-{field.name}{value})?"
    match = re.fullmatch(pattern, text)
    if match is None:
        kinds = (f"{name} being {kind}" for name, (_, kind) in written.items())
        raise UserError(", ".join([problem, *kinds]))
    texts = {name: value for name, value in match.groupdict().items() if value is not None}
    component = cls(**{name: hints[name](value) for name, value in texts.items()})
    for field in fields:
        value, schema = getattr(component, field.name), field.metadata["schema"]
        for bound, (holds, limit) in BOUNDS.items():
            if bound in schema and not holds(value, schema[bound]):
                must = f"must be {limit} {schema[bound]}"
                raise UserError(f"{problem}: {field.name} is {texts[field.name]}, but {must}")
    if str(component) != text:
        raise UserError(f"{kind} '{text}' is written '{component}'")
    return component


def parser_of(catalog: Mapping[str, type[N]], kind: str) -> Callable[[str], N]:
    """A function that builds what a name describes, as `parse` does, each name once."""
    return functools.cache(functools.partial(parse, catalog=catalog, kind=kind))


@contextlib.contextmanager
def explain_value_errors(prefix: str) -> Iterator[None]:
    """Turn the ValueError by which a component refuses settings into a UserError: `prefix` + why,
    and where, if the component is the user's own."""
    try:
        yield
    except ValueError as error:
        line = user_files.user_position(error)
        raise UserError(f"{prefix}{error}{f' ({line})' if line else ''}") from None
