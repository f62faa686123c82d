"""Components: schemas, canonical values, catalogs."""

import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal

import jsonschema
import pytest

from cohort.core.components import Catalog, Component, canonical, parameter, schema_of


@dataclass(frozen=True, kw_only=True)
class Example(Component):
    name: ClassVar[str] = "example"
    share: float = parameter(exclusiveMinimum=0, maximum=1, help="how much")
    count: int = parameter(3, minimum=1, help="how many")
    form: Literal["soft", "hard"] = parameter("hard")
    fast: bool = False
    label: str = "none"
    limit: float | None = None
    mode: Literal["a", "b"] | None = None
    steps: list[int] = parameter(None)
    extra: dict[str, Any] = parameter(None)


EXPECTED = {
    "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "description": "how much"},
    "count": {"type": "integer", "minimum": 1, "description": "how many"},
    "form": {"enum": ["soft", "hard"], "description": ""},
    "fast": {"type": "boolean"},
    "label": {"type": "string"},
    "limit": {"type": ["number", "null"]},
    "mode": {"enum": ["a", "b", None]},
    "steps": {"type": "array", "description": ""},
    "extra": {"type": "object", "description": ""},
}


def test_the_schema_is_of_the_fields_and_nothing_else():
    schema = schema_of(Example)
    assert schema["properties"] == EXPECTED  # `name` and `science` are no parameters
    assert schema["required"] == ["share"]
    assert schema["additionalProperties"] is False
    jsonschema.Draft202012Validator.check_schema(schema)


def test_canonical_drops_defaults():
    defaults = {"count": 3, "form": "hard", "fast": False, "limit": None}
    assert canonical(Example, {"share": 0.5} | defaults) == {"share": 0.5}
    non_defaults = {"share": 0.5, "count": 4, "form": "soft", "fast": True}
    assert canonical(Example, non_defaults) == non_defaults
    assert canonical(Example, {}) == {}


def test_canonical_makes_1_and_1_0_one_value():
    """In the field's own type, since 1 and 1.0 are equal in Python but not in the JSON that a digest is made from."""
    for values in ({"share": 1, "count": 7}, {"share": 1.0, "count": 7.0}):
        assert repr(canonical(Example, values)) == "{'share': 1.0, 'count': 7}"


FILES = {
    "one.py": """
from dataclasses import dataclass
from typing import ClassVar
from zoo import Base
@dataclass(frozen=True, kw_only=True)
class One(Base):
    name: ClassVar[str] = "one"
Alias = One
@dataclass(frozen=True, kw_only=True)
class Nameless(One):
    pass
@dataclass(frozen=True, kw_only=True)
class Another(Nameless):
    name: ClassVar[str] = "another"
class Stranger:
    name = "stranger"
""",
    "two.py": """
from dataclasses import dataclass
from typing import ClassVar
from my.zoo.one import Another, One
@dataclass(frozen=True, kw_only=True)
class Two(One):
    name: ClassVar[str] = "two"
""",
}


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Component]:
    """The base of a catalog, and two files of the user's that extend it."""
    zoo = ModuleType("zoo")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my/zoo").mkdir(parents=True)
    for name, text in FILES.items():
        (tmp_path / "my/zoo" / name).write_text(text)
    for name in ("my", "my.zoo", "my.zoo.one", "my.zoo.two"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "zoo", zoo)

    @dataclass(frozen=True, kw_only=True)
    class Base(Component):
        pass

    zoo.Base = Base  # type: ignore[attr-defined]
    return Base


def catalog(base: type[Component]) -> Catalog[Component]:
    """A catalog of one built-in class that finds the user's files in `my/zoo`."""

    class BuiltIn(base):  # type: ignore[misc, valid-type]
        name = "built-in"

    return Catalog("cohort.zoo", base, (BuiltIn,))


def test_catalog_finds_each_component_once_and_in_order(zoo: type[Component]):
    """No imported classes, no aliases, no subclasses without their own name, no other classes."""
    result = catalog(zoo)
    assert list(result) == ["another", "built-in", "one", "two"]
    places = [(cls.__module__, cls.__name__) for cls in result.values()][2:]
    assert places == [("my.zoo.one", "One"), ("my.zoo.two", "Two")]


def test_catalog_imports_the_users_modules_that_name_what_is_asked_for(zoo: type[Component]):
    result = catalog(zoo)
    assert result["built-in"].name == "built-in" and "my.zoo.one" not in sys.modules
    assert result["one"].__module__ == "my.zoo.one" and "my.zoo.two" not in sys.modules
    assert "three" not in result and len(result) == 4
